"""Repeating published measurements of ZODB storages: ``python -m benchmarks.published``."""
