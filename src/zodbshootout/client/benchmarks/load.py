from __future__ import annotations

from zodbshootout.client.benchmarks.benchmark import CheckFailed
from zodbshootout.client.benchmarks.reading import ColdReading
from zodbshootout.client.specification import Parameters


class Load(ColdReading):
    """Load one cold record after another, each timed by itself.

    It calls what a connection calls: ``load`` of its storage, which is ``loadBefore`` with the
    start of the transaction on every storage that does not bring its own MVCC.
    """

    name = "load"
    title = "Load {objects} Cold Records One by One"
    between = None  # type: ignore[assignment]

    @classmethod
    def work(cls, parameters: Parameters) -> int:  # noqa: ARG003
        return 1

    @classmethod
    def most_at_once(cls, parameters: Parameters) -> int:
        return super().most_at_once(parameters) * parameters.objects

    @classmethod
    def fewest(cls, parameters: Parameters) -> int:
        return parameters.objects

    def prepare(self) -> None:
        super().prepare()
        self.load = self.client.connect()._storage.load
        # What a storage does once when a connection reads would be borne by the first load.
        self.load(self.sets[0].mapping_oid)
        self.look_at_use()
        self.oids = [(each.number, oid) for each in self.sets for oid in each.item_oids]
        self.next_oid = iter([oid for _, oid in self.oids])
        self.loaded: list[bytes] = []

    def supply(self, iterations: int) -> int:
        return super().supply(iterations) * self.client.parameters.objects

    def run(self) -> None:
        self.loaded.append(self.load(next(self.next_oid))[0])

    def check(self, done: int) -> None:
        use = self.count_use()
        self.client.transfers()
        self.count(loads=done)
        if not self.client.parameters.blobs:
            self._compare_contents()
        if use is not None and use.hits:
            raise CheckFailed(
                f"the storage's cache served {use.hits} loads that should have been cold"
            )

    def _compare_contents(self) -> None:
        objects = self.client.parameters.objects
        for at, (record, (number, _)) in enumerate(zip(self.loaded, self.oids)):
            if self.expected(number)[at % objects] not in record:
                raise CheckFailed(
                    f"the record of object {at % objects} holds other data than was written"
                )


BENCHMARKS = (Load,)
