"""What a run finds out before it measures: from files, contenders, servers and the user."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from zodbshootout.cli.options import Options
from zodbshootout.cli.output import Streams
from zodbshootout.cli.parser import COPY
from zodbshootout.cli.values import ASK, FORCE
from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.data import workload_objects
from zodbshootout.client.data.sources import facts_of
from zodbshootout.client.data.trace import make_trace
from zodbshootout.config.source import Source, read_source
from zodbshootout.config.uri import source_of
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.private import with_private_data
from zodbshootout.contenders.selection import (
    baseline_among,
    named,
    not_moved,
    only_clients_in_environments,
    refused_unless_alone,
    shared_databases,
    to_be_zapped,
)
from zodbshootout.contenders.variants import Variants, read_variants
from zodbshootout.crews.cluster import Cluster
from zodbshootout.errors import UserError
from zodbshootout.guardian import Guardian
from zodbshootout.model.outcome import describe
from zodbshootout.model.parameters import CLIENTS
from zodbshootout.model.specification import CopiedData, ReplayedWorkload
from zodbshootout.recording.recorded import WorkloadError
from zodbshootout.scheduling.fork_servers import ForkServers
from zodbshootout.scheduling.host_checks import check_hosts, on_hosts
from zodbshootout.scheduling.opening import open_all
from zodbshootout.scheduling.plan import Plan, Sweep, make_plan
from zodbshootout.scheduling.result_store import Observer
from zodbshootout.servers.dask import cluster_for
from zodbshootout.servers.running import RunningServers

LARGE_FILE = 2**22
"""The size in bytes above which reading a workload or a FileStorage takes seconds."""
MAPPING = "\n<zodb mapping>\ncache-size 5000\n<mappingstorage>\n</mappingstorage>\n</zodb>\n"
"""The contender that ``--include-mapping`` adds."""
T = TypeVar("T")


@dataclass(frozen=True)
class Prepared:
    """What a run has found out; its options are still those that the user has typed."""

    options: Options
    variants: Variants
    cluster: Cluster | None
    """The cluster of ``--hosts``."""
    sweep: Sweep
    """The values of all parameters; some of the workload, of the data to copy and of the hosts."""
    plan: Plan


def prepare(
    options: Options, streams: Streams, guardian: Guardian, places: ExitStack, stack: ExitStack
) -> Prepared:
    """Read all files, and lay out the cells.

    Directories exist until *places* is closed, a cluster until *stack* is.

    :raises UserError: if the run is not possible
    """
    variants = read_variants(_sources(options), options, places, guardian, streams.mask)
    contenders = variants.contenders(options.only)
    baseline, may_write = _named(options, contenders)
    directory = variants.context.directory
    base = replace(
        options.sweep.base,
        workload=_trace(options, directory, streams),
        copied=_copied(options, directory, streams),
    )
    sweep = replace(options.sweep, base=base)
    cluster = stack.enter_context(cluster_for(options.hosts, guardian, directory))
    if cluster is not None:
        contenders = [contender.on_hosts(cluster) for contender in contenders]
        sweep = on_hosts(sweep, cluster)
    plan = replace(
        make_plan(contenders, options.benchmarks, sweep, options.effort),
        baseline=baseline,
        may_write=may_write,
    )
    return Prepared(options, variants, cluster, sweep, plan)


def _sources(options: Options) -> list[Source]:
    sources = [
        read_source(file) if isinstance(file, Path) else source_of(file) for file in options.files
    ]
    if options.private:
        change = partial(with_private_data, only=options.only)
        sources = [replace(source, change=change) for source in sources]
    if options.include_mapping:
        sources[0] = replace(sources[0], text=sources[0].text + MAPPING)
    return sources


def _named(options: Options, contenders: Sequence[Contender]) -> tuple[str | None, Collection[str]]:
    """Return what ``--baseline`` and ``--may-write`` name; check the names in other options."""
    names = [contender.title for contender in contenders]
    named("--zap", _to_be_zapped(options), names)
    required = [one.contender for one in options.requirements if one.contender]
    named("--require", required, [name.lower() for name in names])
    option = "--leaks" if options.leaks else options.memory
    for contender in contenders:
        if option and contender.environment:
            raise UserError(
                f"{option} applies to this Python only, but {contender.title} uses another one; "
                "choose others with --only"
            )
    may_write = named("--may-write", options.may_write, names)
    return baseline_among(contenders, options.baseline), may_write


def _trace(options: Options, directory: Path, streams: Streams) -> ReplayedWorkload:
    """Make a trace of the workload to replay."""
    workload = options.workload
    if workload is None:
        return options.sweep.base.workload
    if workload.size > LARGE_FILE and not options.quiet:
        streams.tell(f"reading {workload.path}")
    try:
        replayed = make_trace(workload, directory / "workload.trace")
    except WorkloadError as error:
        raise UserError(f"--workload: {error}") from None
    if not replayed.transactions:
        raise UserError(f"--workload: {workload.path} holds no transactions")
    replayed = replace(replayed, speed=options.speed)
    if options.data is None:
        return replayed
    path = options.data[0]
    if any(facts.get("anonymous") for facts in workload.facts):
        raise UserError(f"--data: {workload.path} is anonymous: its oids are not those of {path}")
    return _read_data(path, lambda: workload_objects.with_data(replayed, path))


def _copied(options: Options, directory: Path, streams: Streams) -> CopiedData:
    """Return facts about the FileStorage that ``copy`` copies."""
    copied = options.sweep.base.copied
    if COPY not in options.benchmarks:
        return copied
    if options.data is not None:
        path, blob_dir = options.data

        def facts() -> CopiedData:
            if path.stat().st_size > LARGE_FILE and not options.quiet:
                streams.tell(f"reading {path}")
            return facts_of(path, blob_dir)

        copied = _read_data(path, facts)
    return replace(copied, directory=str(directory))


def _read_data(path: Path, read: Callable[[], T]) -> T:
    try:
        return read()
    except Exception as error:  # noqa: BLE001 - FileStorage raises exceptions of many kinds
        raise UserError(f"--data: {path}: {describe(error)}") from None


def open_contenders(
    prepared: Prepared,
    streams: Streams,
    fork_servers: ForkServers,
    stack: ExitStack,
    observer: Observer,
) -> tuple[Plan, RunningServers]:
    """Start servers, open each contender once, and adapt the plan; *stack* stops the servers.

    :raises UserError: if the run is not possible
    """
    options = prepared.options
    plan, servers = open_all(prepared.variants, prepared.plan, fork_servers, stack, observer)
    if prepared.cluster is not None:
        check_hosts(prepared.cluster, plan)
    plan, notes = _with_fitting_clients(options, prepared.sweep, plan)
    for note in [*_notes(options, plan), *notes]:
        streams.complain(note)
    return replace(plan, zapped=_zapped(options, plan, streams, observer)), servers


def _notes(options: Options, plan: Plan) -> Iterator[str]:
    """Yield what the user should know about the contenders."""
    yield from shared_databases(plan.opened)
    yield from only_clients_in_environments(plan.contenders)
    if any(options.rtts):
        yield from not_moved(plan.contenders)
    if options.private:
        files = " and ".join(map(str, options.paths))
        verb = "name" if len(options.paths) > 1 else "names"
        yield f"--private: the run makes its own data; nothing that {files} {verb} is opened"


def _with_fitting_clients(options: Options, sweep: Sweep, plan: Plan) -> tuple[Plan, Sequence[str]]:
    """If two clients are the default, but not possible, plan one client; return a note then."""
    reason = refused_unless_alone(plan.opened, sweep.parameters()[0]) or next(
        (why for name in options.benchmarks if (why := benchmarks()[name].traits.alone)), None
    )
    if options.concurrency or sweep.values[CLIENTS] == [1] or not reason:
        return plan, []
    alone = replace(sweep, values={**sweep.values, CLIENTS: [1]})
    rows = make_plan(plan.contenders, options.benchmarks, alone, options.effort).rows
    return replace(plan, rows=rows), [f"1 client instead of {sweep.values[CLIENTS][0]:g}: {reason}"]


def _to_be_zapped(options: Options) -> list[str]:
    """Return the names in the value of ``--zap``."""
    return [] if options.zap in {None, ASK, FORCE} else [str(options.zap).lower()]


def _zapped(options: Options, plan: Plan, streams: Streams, observer: Observer) -> Collection[str]:
    """Return the titles of the contenders to zap; ask the user if need be."""
    if options.zap is None:
        return ()

    def ask(question: str) -> bool:
        with observer.paused():
            return not options.list_only and streams.ask(question)

    return to_be_zapped(
        plan.contenders,
        _to_be_zapped(options),
        ask if streams.can_ask or options.list_only else None,
        force=options.zap == FORCE,
        unavailable=plan.unavailable,
    )
