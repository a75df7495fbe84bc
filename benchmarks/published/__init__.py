"""Measuring again what was published of ZODB storages: ``python -m benchmarks.published``."""
