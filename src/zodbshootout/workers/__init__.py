"""Worker processes, each of which makes one pyperf run."""
