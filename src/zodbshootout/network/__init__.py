"""Relays, which count the traffic between clients and servers, and make round trips longer.

This package needs only the standard library, and runs in the Python of any environment.
"""
