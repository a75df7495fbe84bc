"""A network between clients and servers, with counters of round trips and bytes and a distance.

It needs only the standard library, and runs in the Python of any environment.
"""
