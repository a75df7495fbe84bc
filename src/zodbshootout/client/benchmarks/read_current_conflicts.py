from __future__ import annotations

from zodbshootout.client.benchmarks.benchmark import CheckFailed
from zodbshootout.client.benchmarks.conflicts import Conflicting
from zodbshootout.client.data.tree import Dataset
from zodbshootout.client.specification import Parameters
from zodbshootout.client.storage_info import StorageInfo


class ReadCurrentConflicts(Conflicting):
    """Each client changes its own objects, and requires its neighbour's to be current."""

    name = "readCurrent_conflicts"
    title = "Update {objects}, readCurrent {objects} of Another"
    dataset = Dataset.NEIGHBOURS

    @classmethod
    def refusal(cls, info: StorageInfo, parameters: Parameters) -> str | None:
        return super().refusal(info, parameters) or info.retry_flaw

    def load(self) -> None:
        super().load()
        root = self.client.connection.root()
        neighbour = (self.own_number + 1) % self.mappings
        self.neighbours = list(self.find(root, neighbour).values())
        for tally in self.neighbours:
            tally._p_activate()

    def change(self) -> None:
        super().change()
        read_current = self.client.connection.readCurrent
        for tally in self.neighbours:
            tally._p_activate()
            read_current(tally)

    def check(self, done: int) -> None:
        super().check(done)
        confirmed = len(self.client.connection._readCurrent)
        if confirmed != len(self.neighbours):
            raise CheckFailed(f"{confirmed} of {len(self.neighbours)} objects were to be confirmed")

    def verify(self) -> None:
        self.leave_connection()
        with self.client.fresh_connection() as connection:
            self.check_counts(connection, self.commits)


BENCHMARKS = (ReadCurrentConflicts,)
