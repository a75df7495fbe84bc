"""The code that runs inside a client: sessions, benchmarks, data and open storages.

The code needs Python 3.9 or later, ZODB and the measured storage, but none of the other
dependencies of zodbshootout: a client may run in another Python than the command.
"""
