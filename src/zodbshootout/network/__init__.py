"""Relays, which count round trips and bytes between clients and servers, and add a distance.

This package needs only the standard library, and runs in the Python of any environment.
"""
