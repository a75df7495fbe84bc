from zodbshootout.crews.local import plan_of
from zodbshootout.model.specification import (
    ClientKind,
    CrewShape,
    Parameters,
    Specification,
    Storage,
)


def test_every_iteration_loads_every_object() -> None:
    storage = Storage("<zodb memory>\n<mappingstorage/>\n</zodb>\n")
    two_threads = CrewShape(2, ClientKind.THREAD, shared=True)
    specification = Specification(storage, "by_oid", Parameters(two_threads, objects=10))
    with plan_of(specification).started() as crew:
        sample = crew.measure(3)
        crew.verify()
    assert sample.iterations == 2 * 3
    assert sample.counts["loads"] >= sample.iterations * 10
