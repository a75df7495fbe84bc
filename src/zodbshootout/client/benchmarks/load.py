from __future__ import annotations

from zodbshootout.client.benchmarks.benchmark import CheckFailed, Shape
from zodbshootout.client.benchmarks.cold import ColdReading, check_cold
from zodbshootout.model.specification import Parameters


class Load(ColdReading):
    """Load cold records one by one, timing each load separately.

    The client calls what connections call: ``loadBefore`` with the start of the transaction, or
    ``load`` if the storage has its own MVCC.
    """

    name = "load"
    title = "Load {objects} Cold Records One by One"
    between = None  # type: ignore[assignment]

    @classmethod
    def shape(cls, parameters: Parameters) -> Shape:
        shape, objects = super().shape(parameters), parameters.objects
        most = shape.most_at_once * objects
        return shape._replace(work=1, most_at_once=most, fewest=objects)

    def prepare(self) -> None:
        super().prepare()
        self.load = self.client.connect()._storage.load
        # In its first load, a storage may also connect to its database.
        self.load(self.sets[0].mapping_oid)
        self.note_use()
        self.next_oid = iter([oid for read_set in self.sets for oid in read_set.item_oids])
        self.loaded: list[bytes] = []

    def supply(self, iterations: int) -> int:
        return super().supply(iterations) * self.client.parameters.objects

    def run(self) -> None:
        self.loaded.append(self.load(next(self.next_oid))[0])

    def check(self, done: int) -> None:
        hits = self.count_use()
        self.client.transfers()
        self.count(loads=done)
        if not self.client.parameters.blobs:
            self._compare_contents()
        check_cold(hits or 0)

    def _compare_contents(self) -> None:
        objects = self.client.parameters.objects
        for at, record in enumerate(self.loaded):
            number, place = divmod(at, objects)
            if self.expected(number)[place] not in record:
                raise CheckFailed(f"the record of object {place} differs from what was written")


BENCHMARKS = (Load,)
