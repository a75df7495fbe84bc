"""A benchmark harness for ZODB storages."""
