"""The code that runs inside a client: sessions, benchmarks, data and open storages.

It needs Python 3.9 or later, ZODB and the storage that it measures, but neither the rest of
zodbshootout nor its dependencies: a client may run in another Python than the command.
"""
