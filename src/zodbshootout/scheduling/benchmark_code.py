"""A hash of a benchmark's code, by which results of different code are told apart."""

from __future__ import annotations

import ast
import hashlib
import inspect
import io
import textwrap
import tokenize

from zodbshootout.client.benchmarks.benchmark import Benchmark

_hashes: dict[type[Benchmark], str] = {}
"""The hashes so far, kept because reading a source can take as long as a short run."""


def code_hash(benchmark: type[Benchmark]) -> str:
    """Return a hash of the source of a benchmark and of the benchmarks that it inherits from.

    The hash does not depend on comments, docstrings, blank lines or the version of Python.  The
    result is empty if a source is not available.
    """
    if benchmark not in _hashes:
        _hashes[benchmark] = _hash_of(benchmark)
    return _hashes[benchmark]


def _hash_of(benchmark: type[Benchmark]) -> str:
    kinds = (kind for kind in inspect.getmro(benchmark) if issubclass(kind, Benchmark))
    try:
        code = "".join(_code(inspect.getsource(kind)) for kind in kinds)
    except (OSError, TypeError):
        return ""
    return hashlib.sha256(code.encode()).hexdigest()[:12]


def _code(source: str) -> str:
    """Return the source of a class without comments, docstrings and blank lines."""
    source = textwrap.dedent(source)
    documentation = {
        number
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            number, column = token.start
            lines[number - 1] = lines[number - 1][:column]
    return "".join(
        f"{line.rstrip()}\n"
        for number, line in enumerate(lines, 1)
        if line.strip() and number not in documentation
    )
