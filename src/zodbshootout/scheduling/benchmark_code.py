"""A hash of the code of a benchmark, by which results of different code are told apart."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import textwrap

from zodbshootout.client.benchmarks.benchmark import Benchmark


def code_hash(benchmark: type[Benchmark]) -> str:
    """Return a hash of the source of a benchmark and of the benchmarks that it inherits from.

    Comments, docstrings and blank lines have no effect on it, and neither has the Python.
    """
    kinds = (kind for kind in inspect.getmro(benchmark) if issubclass(kind, Benchmark))
    code = "".join(_code(inspect.getsource(kind)) for kind in kinds)
    return hashlib.sha256(code.encode()).hexdigest()[:12]


@functools.cache
def _code(source: str) -> str:
    """Return the lines of a class that do something."""
    source = textwrap.dedent(source)
    documentation = {
        number
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    return "".join(
        f"{line.rstrip()}\n"
        for number, line in enumerate(source.splitlines(), 1)
        if not line.strip().startswith("#") and line.strip() and number not in documentation
    )
