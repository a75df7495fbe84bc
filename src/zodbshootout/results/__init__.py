"""Results: records of cells, pyperf files, statistics and verdicts."""
