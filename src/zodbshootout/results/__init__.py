"""Results of cells, with their files, statistics and verdicts."""
