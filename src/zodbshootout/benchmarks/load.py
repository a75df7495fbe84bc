from __future__ import annotations

from zodbshootout.benchmarks.benchmark import CheckFailed
from zodbshootout.benchmarks.reading import OpeningReading
from zodbshootout.model import Parameters


class Load(OpeningReading):
    """Load one cold record after another, each timed by itself.

    It calls what a connection calls: ``load`` of its storage, which is ``loadBefore`` with the
    start of the transaction on every storage that does not bring its own MVCC.
    """

    name = "load"
    title = "Load {objects} Cold Records One by One"
    timed_singly = True
    cold = True

    @classmethod
    def work(cls, parameters: Parameters) -> int:  # noqa: ARG003
        return 1

    @classmethod
    def batch(cls, parameters: Parameters) -> int:
        return parameters.objects

    def set_up(self) -> None:
        super().set_up()
        with self.client.second_connection() as connection:
            self.expected = [connection._storage.load(oid)[0] for oid in self.item_oids]
        if not self.client.parameters.blobs:
            self._compare_contents()

    def _compare_contents(self) -> None:
        for number, (record, content) in enumerate(zip(self.expected, self.contents, strict=True)):
            if content not in record:
                raise CheckFailed(_wrong(number))

    def empty(self) -> tuple[str, ...]:
        return self.client.database.empty_caches()

    def prepare(self) -> None:
        super().prepare()
        self.load = self.client.connect()._storage.load
        self.next_oid = iter(self.item_oids)
        self.loaded: list[bytes] = []

    def approach(self) -> None:
        self.load(self.mapping_oid)

    def run(self) -> None:
        self.loaded.append(self.load(next(self.next_oid))[0])

    def check(self) -> None:
        use = self.note_cache_use()
        self.count(loads=len(self.loaded))
        for number, (record, expected) in enumerate(zip(self.loaded, self.expected, strict=False)):
            if record != expected:
                raise CheckFailed(_wrong(number))
        if use is not None and use.hits:
            raise CheckFailed(
                f"the storage's cache served {use.hits} loads that should have been cold"
            )


def _wrong(number: int) -> str:
    return f"the record of object {number} holds other data than was written"


BENCHMARKS = (Load,)
