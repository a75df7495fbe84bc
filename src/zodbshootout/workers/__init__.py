"""Worker processes; each of them makes one pyperf run."""
