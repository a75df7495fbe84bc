"""The vocabulary that every part shares: cells, outcomes, facts of storages, units."""
