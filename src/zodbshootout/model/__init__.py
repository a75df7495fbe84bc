"""The vocabulary that every part shares: cells, outcomes, facts about storages, units."""
