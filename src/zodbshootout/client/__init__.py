"""What runs inside a client: sessions, benchmarks, the data, and what an open storage can do.

This package needs ZODB and the storage that it measures, and nothing else: neither the rest of
zodbshootout nor what that needs.  It is written for Python 3.9 and later, for a client may live in
another Python than whoever started it.  A client is given a
:class:`~zodbshootout.client.specification.Specification` and gives back counts and recorders that
can be merged.
"""
