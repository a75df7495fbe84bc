"""A hash of the code of a benchmark, by which results of different code are told apart."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

from zodbshootout.client.benchmarks.benchmark import Benchmark


@functools.cache
def code_hash(benchmark: Any) -> str:
    """Return a hash of the source of a benchmark and of the benchmarks that it inherits from.

    Comments, docstrings and blank lines have no effect on it, and neither has the Python.
    """
    digest = hashlib.sha256()
    for kind in benchmark.__mro__:
        if issubclass(kind, Benchmark):
            digest.update("\n".join(_code(inspect.getsource(kind))).encode())
    return digest.hexdigest()[:12]


def _code(source: str) -> Iterator[str]:
    """Yield the lines of a class that do something."""
    source = textwrap.dedent(source)
    documentation = {
        number
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    for number, line in enumerate(source.splitlines(), 1):
        code = line.strip()
        if code and not code.startswith("#") and number not in documentation:
            yield line.rstrip()
