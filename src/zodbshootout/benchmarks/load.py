from __future__ import annotations

from zodbshootout.benchmarks.benchmark import CheckFailed
from zodbshootout.benchmarks.reading import ColdReading
from zodbshootout.model import Parameters


class Load(ColdReading):
    """Load one cold record after another, each timed by itself.

    It calls what a connection calls: ``load`` of its storage, which is ``loadBefore`` with the
    start of the transaction on every storage that does not bring its own MVCC.
    """

    name = "load"
    title = "Load Cold Records One by One"
    timed_singly = True

    @classmethod
    def work(cls, parameters: Parameters) -> int:  # noqa: ARG003
        return 1

    @classmethod
    def batch(cls, parameters: Parameters) -> int:
        return parameters.objects

    def prepare(self) -> None:
        super().prepare()
        self.load = self.client.connect()._storage.load
        self.next_oid = iter(self.item_oids)
        self.loaded: list[bytes] = []

    def run(self) -> None:
        self.loaded.append(self.load(next(self.next_oid))[0])

    def check(self) -> None:
        use = self.note_cache_use()
        self.count(loads=len(self.loaded))
        if not self.client.parameters.blobs:
            self._check_records()
        if use is not None and use.hits:
            raise CheckFailed(
                f"the storage's cache served {use.hits} of {len(self.loaded)} loads that should "
                "have been cold"
            )

    def _check_records(self) -> None:
        for number, (record, content) in enumerate(zip(self.loaded, self.contents, strict=False)):
            if content not in record:
                raise CheckFailed(
                    f"the record of object {number} holds other data than was written"
                )


BENCHMARKS = (Load,)
