"""What was measured: records, pyperf files, statistics and verdicts."""
