"""Tables and charts for the documentation, made from results."""

from __future__ import annotations

import csv
import io
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from benchmarks.command import ROOT
from benchmarks.published.experiments import Experiment, Published, Run
from benchmarks.published.traffic import traffic_tables
from zodbshootout.model.quantities import THROUGHPUT, TIME
from zodbshootout.model.specification import Parameters
from zodbshootout.recording.description import describe
from zodbshootout.recording.recorded import Workload
from zodbshootout.reports import Write, format_named, text
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.comparison import comparison_report
from zodbshootout.reports.costs import costs_report
from zodbshootout.reports.elements import Chart, Entry, Labels, Report, Row, Table
from zodbshootout.reports.headings import title_of
from zodbshootout.reports.sections import whole_report
from zodbshootout.reports.tables import make_report
from zodbshootout.reports.workload_report import workload_report
from zodbshootout.results.figures import Figure
from zodbshootout.results.files import read_results
from zodbshootout.results.result import CellResult
from zodbshootout.results.sides import compare

ENDING = ".json.gz"
TERMINAL = 80
"""The width of texts and pictures, in characters."""
TUTORIAL = "tutorial"
"""The run for which the documentation shows pyperf's output."""


def make_pages(experiments: Sequence[Experiment], data: Path, into: Path) -> list[Path]:
    """Write the page of each experiment with results, and the texts and pictures that it includes.

    Results are read from *data*; pages are written to *into* and returned.
    """
    into.mkdir(parents=True, exist_ok=True)
    made = []
    for experiment in experiments:
        blocks: list[str] = []
        for run in experiment.runs:
            if (data / f"{run.name}{ENDING}").exists():
                results = read_results(data / f"{run.name}{ENDING}")
                if not run.traffic:
                    _write_texts(run, results, data, into)
                blocks += _blocks(run, results, into)
        if blocks:
            page = into / f"{experiment.name}.rst"
            page.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
            made.append(page)
    return made


def _write_texts(run: Run, results: Sequence[CellResult], data: Path, into: Path) -> None:
    """Write the output of the command, of comparisons, and, for the tutorial, of pyperf."""
    report = make_report([ResultSet(results)])
    _write(text.write, report, into / f"{run.name}.txt", TERMINAL)
    if run.terminal:
        _picture_terminal(run, report, into / f"{run.name}-table.svg")
    comparisons = list(_comparisons(run, results))
    if comparisons:
        _write(text.write, Report(parts=comparisons), into / f"{run.name}-compare.txt", TERMINAL)
    if run.costs:
        _write(
            text.write, costs_report([ResultSet(results)]), into / f"{run.name}-costs.txt", TERMINAL
        )
    if run.seconds:
        in_seconds = make_report([ResultSet(results)], TIME)
        _write(text.write, in_seconds, into / f"{run.name}-seconds.txt", TERMINAL)
    if run.workload:
        workload = Workload(ROOT / run.workload)
        described = workload_report(workload.path.name, workload, describe(workload))
        path = into / f"{workload.path.stem}-workload.txt"
        _write(text.write, replace(described, charts=()), path, TERMINAL)
    if run.name == TUTORIAL:
        shown = subprocess.run(
            [sys.executable, "-m", "pyperf", "show", "--quiet", str(data / f"{run.name}{ENDING}")],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        (into / f"{run.name}-pyperf.txt").write_text(shown.stdout, encoding="utf-8")


def _comparisons(run: Run, results: Sequence[CellResult]) -> Iterator[Report]:
    for names in run.compared:
        base, new = ([result for result in results if result.cell.title == name] for name in names)
        yield comparison_report(compare(base, new, across=True).named(*names))


def _picture_terminal(run: Run, report: Report, path: Path) -> None:
    """Write a picture of a terminal's output that does not load a font from a server."""
    console = Console(record=True, width=TERMINAL, file=io.StringIO(), force_terminal=True)
    console.print(f"$ {run.command}", highlight=False)
    text.write(report, console)
    code = re.sub(r"@font-face \{\{.*?\n    \}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    path.write_text(console.export_svg(title="", code_format=code, unique_id="t"), encoding="utf-8")


def _blocks(run: Run, results: Sequence[CellResult], into: Path) -> Iterator[str]:
    yield f"{run.title}\n{'-' * len(run.title)}"
    yield f".. code-block:: console\n\n    $ {run.command}"
    yield _where(results)
    if run.traffic:
        yield written(Report(list(traffic_tables(results))))
        return
    yield written(make_report([ResultSet(results)]))
    charts = [
        replace(chart, percentile="")
        for part in whole_report([ResultSet(results)]).parts
        if part.anchor == run.part
        for chart in part.all_charts()
        if chart.percentile == run.percentile
        and run.distributions == (chart.x.labels is Labels.PERCENTILES)
    ]
    if charts:
        picture = into / f"{run.name}.svg"
        _write(format_named("svg"), Report(charts=charts), picture)
        yield _image(f"{into.name}/{picture.name}", charts)
    for comparison in _comparisons(run, results):
        yield written(replace(comparison, notes=comparison.notes[:1]))
    for published in run.published:
        yield written(Report([_then_and_now(published, results)]))


def _where(results: Sequence[CellResult]) -> str:
    """Return the dates, the machine and the versions of the results."""
    metadata_of_runs = [run.get_metadata() for result in results for run in result.runs]
    first = metadata_of_runs[0]
    days = sorted(str(metadata["date"])[:10] for metadata in metadata_of_runs)
    when = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    names = sorted(
        {key for metadata in metadata_of_runs for key in metadata if key.startswith("version_")}
    )
    versions = [
        f"{name.removeprefix('version_')} "
        + " and ".join(
            sorted({str(metadata[name]) for metadata in metadata_of_runs if name in metadata})
        )
        for name in names
    ]
    return (
        f"Measured {when} on {first['cpu_count']} CPUs ({first['cpu_model_name']}, "
        f"{first['platform']}) with Python {first['python_version']}: {', '.join(versions)}."
    )


def _then_and_now(published: Published, results: Sequence[CellResult]) -> Table:
    """Return the speeds of contenders as multiples of another one's, then and now."""
    others = [column for column in published.columns if column != published.relative_to]
    rows = []
    for name, figures in published.rows.items():
        then = dict(zip(published.columns, figures, strict=True))
        now = {
            result.cell.title: result
            for result in results
            if result.measured
            and result.cell.benchmark == name
            and _is_of(published, result.cell.parameters)
        }
        if published.relative_to not in now:
            continue
        entries = []
        for column in others:
            times = then[column] / then[published.relative_to]
            entries += [Entry(f"{times:.2f}"), Entry(_times(now, column, published.relative_to))]
        rows.append(Row(title_of(next(iter(now.values()))), entries))
    columns = [f"{column} {when}" for column in others for when in ("then", "now")]
    caption = (
        f"Times as fast as {published.relative_to}, then ({published.where}) and now: "
        f"{published.clients} clients, objects of {published.object_size} bytes"
    )
    return Table(caption, columns, rows)


def _is_of(published: Published, parameters: Parameters) -> bool:
    return (parameters.crew.size, parameters.objects, parameters.object_size) == (
        published.clients, published.objects, published.object_size,
    )  # fmt: skip


def _times(now: dict[str, CellResult], column: str, base: str) -> str:
    if column not in now:
        return "-"
    return f"{Figure(now[column], THROUGHPUT).value / Figure(now[base], THROUGHPUT).value:.2f}"


def written(report: Report) -> str:
    """Return the tables and the notes of a report in reStructuredText."""
    notes = "\n".join(f"- {_escaped(str(note))}" for note in report.notes)
    return "\n\n".join(filter(None, [*map(_csv_table, report.tables), notes]))


def _csv_table(table: Table) -> str:
    stream = io.StringIO()
    rows = csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\n    ")
    rows.writerows(map(_escaped, line) for line in table.lines())
    head = f".. csv-table:: {_escaped(table.caption)}".rstrip()
    return f"{head}\n    :header-rows: 1\n\n    {stream.getvalue().rstrip()}"


def _escaped(text: str) -> str:
    return re.sub(r"[\\*`|_]", r"\\\g<0>", text)


def _write(write: Write, report: Report, path: Path, width: int = 1000) -> None:
    with path.open("w", encoding="utf-8") as file:
        write(report, Console(file=file, width=width))


def _image(path: str, charts: Sequence[Chart]) -> str:
    description = ". ".join(chart.summary() for chart in charts)
    return f".. image:: {path}\n    :alt: {description}"
