"""Vacuum a database from which a pack has removed old revisions and garbage."""

from __future__ import annotations

from zodbshootout.client.benchmarks.pack import Pack
from zodbshootout.model.specification import Parameters
from zodbshootout.model.storage_facts import StorageInfo


class Vacuum(Pack):
    """Have the database reclaim the space of what a pack has removed."""

    name = "vacuum"

    @classmethod
    def refusal(cls, info: StorageInfo, parameters: Parameters) -> str | None:
        return info.vacuum_flaw or super().refusal(info, parameters)

    def prepare(self) -> None:
        super().prepare()
        super().run()
        self.size = self._disk_size()

    def run(self) -> None:
        self.client.database.vacuum()

    def check(self, done: int) -> None:  # noqa: ARG002
        self.count_freed_bytes()
        self.check_sample()
        del self.counts["freed_objects"]  # by the pack
