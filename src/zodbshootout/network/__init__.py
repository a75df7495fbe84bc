"""A network between clients and servers: counted round trips and bytes, and a distance.

It needs the standard library alone and runs in the Python of any environment.
"""
