"""The scheduling of a run: what is measured when, and the results so far."""
