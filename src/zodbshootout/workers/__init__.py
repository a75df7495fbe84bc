"""Worker processes, in which pyperf's machinery measures."""
