"""Read objects by their OIDs, with no mapping in between."""

from zodbshootout.api.benchmarks import (
    FROM_CACHE,
    PICKLE_CACHE,
    Benchmark,
    CheckFailed,
    Dataset,
    Traits,
    find_objects,
    records_each,
)


class ByOID(Benchmark):
    """Read what the storage's cache holds, object by object, by OID."""

    name = "by_oid"
    title = "Read {objects} Objects by OID"
    legend = "from the storage's cache"
    topic = FROM_CACHE
    traits = Traits(writes=False)
    dataset = Dataset.READ

    def set_up(self) -> None:
        parameters = self.client.parameters
        with self.client.second_connection() as connection:
            mapping = find_objects(connection.root(), self.dataset, parameters, self.client.index)
            self.oids = [item._p_oid for item in mapping.values()]
        self.records = len(self.oids) * records_each(parameters)
        self.contents = self.client.payload.contents(parameters.objects, revision=0)

    def prepare(self) -> None:
        self.client.disconnect()
        self.client.connect()
        self.run()  # now the storage's cache holds the objects
        self.between()
        self.cleared = (PICKLE_CACHE,)

    def between(self) -> None:
        self.client.connection.cacheMinimize()

    def run(self) -> None:
        get = self.client.connection.get
        self.read = [get(oid).content for oid in self.oids]

    def check(self, done: int) -> None:
        loads, _ = self.count_transfers()
        if loads != done * self.records:
            raise CheckFailed(f"{loads} records were loaded instead of {done * self.records}")
        if self.read != self.contents:
            raise CheckFailed("the objects hold other data than was written")
