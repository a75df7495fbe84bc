"""Relays between clients and servers, which count round trips and bytes, and add a distance.

This package needs only the standard library, and runs in the Python of any environment.
"""
