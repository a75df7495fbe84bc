"""The code that runs inside a client: sessions, benchmarks, data and open storages.

This package needs ZODB and the storage that it measures, and nothing else: neither the rest of
zodbshootout nor its dependencies.  It is written for Python 3.9 and later, because a client may run
in another Python than the command.  A client gets a
:class:`~zodbshootout.client.specification.Specification` and returns counts and mergeable
recorders.
"""
