"""Read objects by their OIDs, with no mapping in between."""

from zodbshootout.benchmarks.benchmark import Benchmark, CheckFailed
from zodbshootout.data import tree
from zodbshootout.data.records import records_each
from zodbshootout.data.tree import Purpose


class ByOID(Benchmark):
    """Read what the storage's cache holds, object by object, by OID."""

    name = "by_oid"
    title = "Read {objects} Objects by OID"
    purpose = Purpose.READ

    def set_up(self) -> None:
        parameters = self.client.parameters
        with self.client.second_connection() as connection:
            mapping = tree.find(connection.root(), self.purpose, parameters, self.client.index)
            self.oids = [item._p_oid for item in mapping.values()]
        self.due = len(self.oids) * records_each(parameters)
        self.contents = self.client.payload.contents(parameters.objects, revision=0)

    def begin(self) -> None:
        self.client.disconnect()
        self.client.connect()

    def prepare(self) -> None:
        connection = self.client.connection
        connection.cacheMinimize()
        connection.getTransferCounts(clear=True)
        self.cleared = ("pickle cache",)

    def run(self) -> None:
        get = self.client.connection.get
        self.found = [get(oid).content for oid in self.oids]

    def check(self) -> None:
        loads, _ = self.client.connection.getTransferCounts(clear=True)
        self.count(loads=loads)
        if loads != self.due:
            raise CheckFailed(f"{loads} objects were loaded where {self.due} were due")
        if self.found != self.contents:
            raise CheckFailed("the objects hold other data than was written")
