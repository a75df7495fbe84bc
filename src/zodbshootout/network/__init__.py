"""Relays, which count the traffic between clients and servers, and make round trips longer.

This package needs only the standard library, so the Python of any environment can run it.
"""
