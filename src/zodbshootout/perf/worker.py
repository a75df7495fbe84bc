"""The process that measures: ``python -m zodbshootout.perf.worker``.

pyperf's Runner drives it in its worker mode: it counts warm-ups, values and loops, applies hooks
and affinity, and traces memory.  What is measured is the engine's.
"""

from __future__ import annotations

import sys

if "--gevent" in sys.argv:
    from gevent import monkey

    monkey.patch_all()

import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyperf

from zodbshootout.benchmarks.benchmark import Benchmark, Unsupported
from zodbshootout.benchmarks.registry import benchmarks
from zodbshootout.config.configuration import ConfigurationError
from zodbshootout.config.loggers import read_loggers
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.database import Database
from zodbshootout.data.records import Item, content_size, record_size
from zodbshootout.engine.crew import CrewFailed
from zodbshootout.engine.measurement import Measurement
from zodbshootout.engine.planting import plant, stock
from zodbshootout.engine.profiling import Recorder, recorder
from zodbshootout.engine.protocol import Failed, failed
from zodbshootout.engine.sample import CrewSample
from zodbshootout.engine.summary import summarize
from zodbshootout.model import Cell
from zodbshootout.perf.leaks import Growth
from zodbshootout.perf.profiles import PREFIX, collect
from zodbshootout.perf.restarting import ask_for_restart
from zodbshootout.perf.task import REPORT_FILE, RUN_FILE, TASK_FILE, Action, Report, Task

_MISSING_DRIVER = {
    "DriverNotAvailableError",
    "DriverNotImportableError",
    "NoDriversAvailableError",
}
"""Names, because RelStorage, which raises these, may be missing itself."""


def main() -> int:
    """Do the task in the directory that ``--task`` names; leave a report there."""
    runner = pyperf.Runner()
    runner.argparser.add_argument("--task", type=Path, required=True)
    runner.argparser.add_argument("--gevent", action="store_true")
    options = runner.parse_args()
    report = _carry_out(runner, options.task)
    report.write(options.task / REPORT_FILE)
    return 0 if report.state == "done" else 1


def _carry_out(runner: pyperf.Runner, directory: Path) -> Report:
    try:
        task = Task.read(directory / TASK_FILE)
        configure_logging(task.log)
        contender = task.subject.contender(task.contender)
    except ConfigurationError as error:
        return Report("misconfigured", str(error))
    except BaseException as error:  # noqa: BLE001 - nothing of a worker's goes unreported
        return _report_failure(failed(error))
    try:
        return Report("done", facts=_act(runner, task, contender, directory / RUN_FILE))
    except CrewFailed as error:
        return _report_failure(error.failure, contender)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is this cell's failure
        advice = contender.installation()
        if advice and type(error).__name__ in _MISSING_DRIVER:
            return Report("misconfigured", advice, failed(error).detail)
        return _report_failure(failed(error), contender)


def _report_failure(failure: Failed, contender: Contender | None = None) -> Report:
    state = "unsupported" if failure.unsupported else "failed"
    advice = contender.advice(failure.cause) if contender else None
    cause = f"{failure.cause}; {advice}" if advice else failure.cause
    return Report(state, cause, failure.detail)


def _act(
    runner: pyperf.Runner, task: Task, contender: Contender, run_file: Path
) -> Mapping[str, str]:
    if task.action is Action.LOOK:
        return _facts(contender)
    assert task.cell is not None
    if task.action is Action.PREPARE:
        _prepare(task, task.cell, contender)
    else:
        _measure(runner, task, task.cell, contender, run_file)
    return {}


def _facts(contender: Contender) -> dict[str, str]:
    """Open a contender and return what is worth knowing of it."""
    with Database(contender) as database:
        facts = {f"version_{name}": text for name, text in database.versions().items()}
        facts["driver"] = database.driver() or ""
        facts["sharing"] = database.sharing.value
        facts["stores_blobs"] = "yes" if database.has_blobs else "no"
        facts["storage_classes"] = " over ".join(database.storage_classes)
        facts["corrections"] = "; ".join(database.corrections())
    return facts


def _prepare(task: Task, cell: Cell, contender: Contender) -> None:
    with Database(contender) as database:
        if task.zap:
            database.zap()
        stock(database, cell.parameters)
        if task.pack:
            flaw = database.pack_flaw()
            if flaw is not None:
                raise Unsupported(f"{flaw}; leave out --pack")
            database.pack()
        plant(database, benchmarks()[cell.benchmark].purpose, cell.parameters)


def _measure(
    runner: pyperf.Runner, task: Task, cell: Cell, contender: Contender, run_file: Path
) -> None:
    benchmark = benchmarks()[cell.benchmark]
    samples: list[CrewSample] = []
    parts = run_file.with_name("profiles")
    profiles = _recorder(task, cell, parts)
    measurement = Measurement(
        benchmark,
        replace(contender, restarted=task.restart),
        cell.parameters,
        recorder=profiles,
        interlude=partial(ask_for_restart, contender.name) if task.restart else None,
    )
    with measurement.started() as measure:
        growth = Growth() if task.leaks else None

        def time_func(loops: int) -> float:
            with profiles.recording():
                sample = measure(loops)
            samples.append(sample)
            if growth is not None:
                what = f"{cell.contender}: {cell.benchmark}"
                print(*growth.lines(what, samples), sep="\n", flush=True)  # noqa: T201
            return sample.value(task.collector) * loops

        metadata = _metadata(task, cell, contender, benchmark)
        bench = runner.bench_time_func(cell.benchmark, time_func, metadata=metadata)
    bench.update_metadata(_storable(summarize(samples[runner.args.warmups :])))
    bench.dump(str(run_file), replace=True)
    if task.profiling is not None:
        try:
            collect(parts, task.profiling)
        except OSError as error:
            print(f"{PREFIX}{task.profiling.name} could not be written: {error}", flush=True)  # noqa: T201


def _recorder(task: Task, cell: Cell, parts: Path) -> Recorder:
    if task.profiling is None:
        return Recorder()
    parts.mkdir()
    return recorder(task.profiling.profiler, cell.parameters.crew.unit, parts)


def _metadata(
    task: Task, cell: Cell, contender: Contender, benchmark: type[Benchmark]
) -> dict[str, str | int | float]:
    settings = contender.settings
    return _storable(
        {
            **cell.metadata(),
            "work_per_iteration": benchmark.work(cell.parameters),
            "record_size_bytes": _record_size(cell, benchmark),
            "collector": task.collector,
            "iterations_timed_together": (
                1 if benchmark.timed_singly else benchmark.batch(cell.parameters)
            ),
            "profiler": task.profiling.profiler if task.profiling else "none",
            "servers_restarted": "before each value" if task.restart else "no",
            "configuration": "; ".join(f"{key}={value}" for key, value in settings.items()),
            "configuration_hash": contender.fingerprint(),
            **task.facts,
        }
    )


def _record_size(cell: Cell, benchmark: type[Benchmark]) -> int | str:
    """Return the bytes of an object's record, and nothing where it does not hold the content."""
    if cell.parameters.blobs or benchmark.counted != "objects":
        return ""
    kind = Item if benchmark.purpose is None else benchmark.purpose.kind
    return record_size(content_size(cell.parameters.object_size, kind), kind)


def _storable(metadata: Mapping[str, str | int | float]) -> dict[str, str | int | float]:
    """Return *metadata* as pyperf takes them: no line breaks, nothing empty."""
    plain = {
        key: " ".join(value.split()) if isinstance(value, str) else value
        for key, value in metadata.items()
    }
    return {key: value for key, value in plain.items() if value != ""}


def configure_logging(log: str | None) -> None:
    """Send log records to standard error from a level on, or wherever a ZConfig file says."""
    if log is None:
        return
    if log.isupper():
        logging.basicConfig(
            level=log,
            format="%(asctime)s %(levelname)s [%(process)d %(threadName)s] %(name)s: %(message)s",
        )
    else:
        for configure in read_loggers(Path(log)):
            configure()


if __name__ == "__main__":
    _status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    if _status:
        # A client that hangs in its storage would keep the interpreter from ending.
        os._exit(_status)
    sys.exit(_status)
