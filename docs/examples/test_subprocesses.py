from zodbshootout.crews.local import plan_of
from zodbshootout.model.specification import (
    ClientKind,
    CrewShape,
    Parameters,
    Specification,
    Storage,
)


def test_clients_measure_together() -> None:
    storage = Storage("<zodb memory>\n<mappingstorage/>\n</zodb>\n")
    two_clients = CrewShape(2, ClientKind.SUBPROCESS)
    specification = Specification(storage, "add", Parameters(two_clients, objects=10))
    with plan_of(specification).started() as crew:
        sample = crew.measure(3)
        crew.verify()
    assert sample.iterations == 2 * 3
