"""The code that runs inside a client: sessions, benchmarks, data and open storages.

It needs ZODB and the storage that it measures, neither the rest of zodbshootout nor its
dependencies, and Python 3.9 or later, as a client may run in another Python than the command.
"""
