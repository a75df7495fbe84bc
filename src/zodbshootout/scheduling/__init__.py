"""The order of rows, runs and slices, and what was measured so far."""
