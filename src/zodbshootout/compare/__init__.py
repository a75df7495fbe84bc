"""Which of two is faster: results in, verdicts out.

Nothing here reads files or prints.
"""
