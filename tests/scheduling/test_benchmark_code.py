"""The hash of a benchmark's code."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.benchmarks.benchmark import Benchmark
from zodbshootout.scheduling.benchmark_code import code_hash

SOURCE = '''
from zodbshootout.client.benchmarks.benchmark import Benchmark

class Some(Benchmark):
    """A benchmark."""

    def run(self, number):
        # the work
        self.note("# some")  # of it
        return self.client.session.commit()
'''


def hash_of(path: Path, source: str) -> str:
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, path.stem, module)
        spec.loader.exec_module(module)
        return code_hash(module.Some)


def test_only_code_changes_the_hash(tmp_path: Path) -> None:
    original = hash_of(tmp_path / "some_a.py", SOURCE)
    for number, (old, new) in enumerate(
        [
            ("# the work", "# other words"),
            ("  # of it", ""),
            ("A benchmark.", "One\n    more line."),
            ("\n\n", "\n"),
        ]
    ):
        changed = SOURCE.replace(old, new)
        assert changed != SOURCE
        assert hash_of(tmp_path / f"some_{number}.py", changed) == original
    for number, (old, new) in enumerate([("commit", "abort"), ("# some", "# more")]):
        changed = SOURCE.replace(old, new)
        assert hash_of(tmp_path / f"some_other_{number}.py", changed) != original


def test_lines_of_a_text_and_an_ellipsis_are_code(tmp_path: Path) -> None:
    of_lines = [
        hash_of(tmp_path / f"some_{number}.py", f'{SOURCE}\n    QUERY = """\n{line}\n"""\n')
        for number, line in enumerate(["# a", "# b"])
    ]
    of_bodies = [
        hash_of(tmp_path / f"some_{number}.py", f"{SOURCE}\n    def stop(self):\n        {body}\n")
        for number, body in enumerate(["...", "pass"], 2)
    ]
    assert len({*of_lines, *of_bodies}) == 4


def test_a_benchmark_whose_source_is_not_there_has_no_hash(tmp_path: Path) -> None:
    assert hash_of(tmp_path / "some_a.py", SOURCE)
    assert code_hash(type("Some", (Benchmark,), {"__module__": "nowhere"})) == ""


@pytest.mark.slow
def test_all_benchmarks_have_different_hashes() -> None:
    assert len(set(map(code_hash, benchmarks().values()))) == len(benchmarks())
