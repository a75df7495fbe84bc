"""The command that writes a report."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.cli.files import written
from tests.commands import outcome
from tests.reports.results import EVERYTHING
from tests.reports.swept import SWEPT
from tests.runs import failed
from zodbshootout.cli.report import ReportFile

HTML, SVG, PNG = b"<!DOCTYPE html>", b"<svg", b"\x89PNG"


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "out.json", *EVERYTHING)
    return Path("out.json")


def names_here() -> list[str]:
    return sorted(path.name for path in Path().iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("page.html", HTML), ("page.HTM", HTML), ("page.svg", SVG), ("page.png", PNG),
        ("page.md", b"# fs, zeo and pg"), ("page.txt", b"\nfs, zeo and pg\n="),
        ("page.csv", b"file,benchmark"), ("page.json", b"[\n {"),
    ],
)  # fmt: skip
def test_the_file_ending_determines_the_format(out: Path, name: str, start: bytes) -> None:
    assert outcome("report", out, "-o", name) == (0, f"Report: {name}\n", "")
    assert Path(name).read_bytes().startswith(start)
    assert names_here() == sorted(["out.json", "out.d", "out.cells.jsonl", name])


@pytest.mark.slow
def test_a_format_can_be_named(out: Path) -> None:
    assert outcome("report", out, "-o", "page", "--format", "svg")[0] == 0
    assert Path("page").read_bytes().startswith(SVG)


def test_a_report_whose_name_is_too_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # From Python 3.14 on, this is the answer for a name that the system refuses.
    monkeypatch.setattr(Path, "is_file", lambda _: False)
    with pytest.raises(OSError, match="File name too long"):
        ReportFile.checked("-o", tmp_path / f"{'a' * 300}.md", [])


def test_a_report_is_written_through_a_link(out: Path) -> None:
    Path("link.md").symlink_to("page.md")
    assert outcome("report", out, "-o", "link.md") == (0, "Report: link.md\n", "")
    assert Path("link.md").is_symlink()
    assert "fs, zeo and pg" in Path("page.md").read_text(encoding="utf-8")
    Path("loop.md").symlink_to("loop.md")
    status, _, stderr = outcome("report", out, "-o", "loop.md")
    message = "zodbshootout: loop.md: Too many levels of symbolic links\n"
    assert (status, stderr) == (2, message)


def test_nothing_is_printed_beside_a_report_for_a_pipe(out: Path) -> None:
    os.mkfifo("pipe.csv")
    status, _, stderr = outcome("report", out, "-o", "pipe.csv")
    assert (status, stderr) == (
        2,
        "zodbshootout: -o: cannot write pipe.csv: no program reads this pipe; start one first\n",
    )
    reader = os.open("pipe.csv", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert outcome("report", out, "-o", "pipe.csv") == (0, "", "")
        assert os.read(reader, 2**16).startswith(b"file,benchmark")
    finally:
        os.close(reader)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's")
def test_a_full_device_is_reported_in_one_line(out: Path) -> None:
    Path("full.csv").symlink_to("/dev/full")
    status, _, stderr = outcome("report", out, "-o", "full.csv")
    assert (status, stderr) == (
        2, "zodbshootout: -o: cannot write full.csv: No space left on device\n"
    )  # fmt: skip


def test_several_files_are_reported_side_by_side(out: Path) -> None:
    written(Path("new.json"), *EVERYTHING)
    assert outcome("report", out, "new.json", "-o", "page.md")[0] == 0
    text = Path("page.md").read_text(encoding="utf-8")
    assert text.startswith("# out.json and new.json\n")
    assert "| Benchmark | out: fs | out: zeo | out: pg | new: fs | new: zeo | new: pg |" in text
    assert "- new: fs against out: fs: no difference seen at add\n" in text


def test_the_baseline_can_be_named(out: Path) -> None:
    assert outcome("report", out, "-o", "page.md", "--baseline", "zeo")[0] == 0
    text = Path("page.md").read_text(encoding="utf-8")
    assert "- fs is 4.9 times as fast as zeo (3.0 to 8.2)" in text
    assert "×: the speed as a multiple of that of zeo; " in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["out.json"], "the following arguments are required: -o/--output"),
        (["out.json", "-o", "page"], "-o: page: its ending selects the format; name a file"),
        (["out.json", "-o", "page.pdf"], "no format ends in '.pdf'; name a file such as"),
        (["out.json", "-o", "."], "-o: . is a directory; name a file, such as page.html"),
        (["out.json", "-o", "/", "--format", "html"], "-o: / is a directory; name a file"),
        (["out.json", "-o", "a.html", "--format", "htm"], "--format: no 'htm'; did you mean"),
        (["gone.json", "-o", "a.html"], "there is no file gone.json"),
        (["out.json", "-o", "gone/a.html"], "-o: cannot write gone/a.html: No such file"),
        (["out.json", "-o", "a.html", "--baseline", "x"], "no contender 'x'; there are fs, zeo"),
    ],
)
def test_a_report_that_cannot_be_written_is_refused_in_one_line(
    out: Path, words: list[str], message: str
) -> None:
    status, stdout, stderr = outcome("report", *words)
    assert (status, stdout) == (2, "")
    assert message in stderr
    assert stderr.count("\n") == 1
    assert names_here() == ["out.cells.jsonl", "out.d", "out.json"]


@pytest.mark.slow
@pytest.mark.parametrize("module", ["altair", "vl_convert", "jinja2"])
def test_a_missing_package_is_reported_with_the_command_to_type(
    out: Path, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("html", "svg", "png", "drawing"):
        monkeypatch.delitem(sys.modules, f"zodbshootout.reports.{name}", raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    status, _, stderr = outcome("report", out, "-o", "page.html")
    assert status == 2
    assert "which is in zodbshootout[report]; install it: pip install altair vl-convert" in stderr
    assert outcome("report", out, "-o", "page.md")[0] == 0
    assert outcome("out.conf", "--report", "page.html", "--list")[0] == 2


def test_a_chart_without_figures_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", failed(EVERYTHING[0].cell, "gone"))
    for ending in ("svg", "png"):
        status, _, stderr = outcome("report", path, "-o", tmp_path / f"a.{ending}")
        assert status == 2
        assert "no chart can be drawn: there are no figures" in stderr


@pytest.mark.slow
def test_a_page_without_figures_says_why(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", failed(EVERYTHING[0].cell, "gone"))
    status, _, _ = outcome("report", path, "-o", tmp_path / "a.html")
    assert status == 0
    assert "gone" in (tmp_path / "a.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_an_html_page_is_smaller_than_3_megabytes(tmp_path: Path, out: Path) -> None:
    path = written(tmp_path / "swept.json", *SWEPT)
    assert outcome("report", path, "-o", "page.html")[0] == 0
    assert Path("page.html").stat().st_size < 3_000_000


@pytest.mark.slow
def test_an_html_page_loads_nothing_from_elsewhere(out: Path) -> None:
    outcome("report", out, "-o", "page.html")
    page = Path("page.html").read_text(encoding="utf-8")
    head = page[: page.index("</head>")]
    assert "default-src 'none'" in head
    assert "<link" not in page[: page.index('<script type="application/json"')]
    assert "src=" not in head.replace("default-src=", "")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["show", "compare"])
@pytest.mark.parametrize(
    ("kind", "start"), [("html", HTML), ("markdown", b"**"), ("json", b"[\n {")]
)
def test_other_commands_write_in_the_same_formats(
    out: Path, name: str, kind: str, start: bytes
) -> None:
    more = ["--contender", "fs", "zeo"] if name == "compare" else []
    status, stdout, _ = outcome(name, out, *more, "--format", kind)
    assert status == 0
    assert stdout.encode().startswith(start)


@pytest.mark.parametrize("name", ["out.json", "./out.json", "other.json", "out.cells.jsonl"])
def test_a_report_does_not_overwrite_results(out: Path, name: str) -> None:
    written(Path("other.json"), *EVERYTHING)
    before = Path(name).read_bytes()
    message = f"zodbshootout: -o: {Path(name)} holds results or is an input; name another file\n"
    assert outcome("report", out, "-o", name) == (2, "", message)
    assert Path(name).read_bytes() == before


def test_the_report_of_a_run_does_not_overwrite_results(out: Path) -> None:
    Path("x.conf").write_text("<zodb m>\n<mappingstorage>\n</mappingstorage>\n</zodb>\n")
    for name in ("out.json", "new.json"):
        status, _, stderr = outcome("x.conf", "add", "-c1", "-o", "new.json", "--report", name)
        assert (status, stderr.count("\n")) == (2, 1)
        assert f"--report: {name} holds results or is an input" in stderr
    assert not Path("new.json").exists()


@pytest.mark.parametrize(
    "form", ["html", "md", "svg", "png", "csv", "txt", "json", "customSmallerIsBetter"]
)
def test_a_page_replaces_a_page_but_no_other_file_without_force(form: str, out: str) -> None:
    page = Path(f"page.{form}")
    words = ("report", out, "-o", page, *(("--format", form) if len(form) > 4 else ()))
    page.write_text("about zodbshootout\n")
    status, _, err = outcome(*words)
    assert (status, page.read_text()) == (2, "about zodbshootout\n")
    assert err == (
        f"zodbshootout: -o: {page} exists and is not a page of zodbshootout; "
        "name another file, or use --force\n"
    )
    assert outcome(*words, "--force")[0] == 0
    assert outcome(*words)[0] == 0  # it is a page now


@pytest.mark.parametrize("form", ["html", "md", "csv", "txt", "json"])
def test_a_page_about_a_workload_replaces_itself(form: str, out: str) -> None:
    words = ("workload", "sessions", "-o", f"page.{form}")
    assert outcome(*words)[0] == 0
    assert outcome(*words)[0] == 0
    Path(f"page.{form}").write_text("mine")
    assert outcome(*words)[0] == 2
