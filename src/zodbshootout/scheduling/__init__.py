"""The order of rows, runs and slices, and the results so far."""
