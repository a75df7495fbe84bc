"""A run: from its options to the table, the files and the exit status."""

from __future__ import annotations

from contextlib import ExitStack

from zodbshootout.cli.destination import check_like, destination
from zodbshootout.cli.gate import status_of
from zodbshootout.cli.launcher import launcher_for
from zodbshootout.cli.measurement import judgements, measure
from zodbshootout.cli.options import Options
from zodbshootout.cli.output import Streams
from zodbshootout.cli.preparing import open_contenders, prepare
from zodbshootout.cli.printing import show_plan, show_results
from zodbshootout.cli.progress import progress_on
from zodbshootout.errors import INTERRUPTED, UserError, errors_of_files
from zodbshootout.guardian import Guardian
from zodbshootout.scheduling.fork_servers import ForkServers
from zodbshootout.scheduling.orders import Tasks
from zodbshootout.scheduling.result_store import ResultStore
from zodbshootout.scheduling.shootout import Shootout


def run(options: Options, streams: Streams) -> int:
    """Measure what the options ask for, print the results, and return the exit status.

    :raises UserError: if the run is not possible, or its results cannot be written
    """
    # Directories remain until the guardian has ended the processes that use them.
    with ExitStack() as places, _guardian() as guardian, ExitStack() as stack:
        with errors_of_files():
            prepared = prepare(options, streams, guardian, places, stack)
            to = destination(options, prepared.plan, streams.mask, stack)
            files = to.files
        with (
            progress_on(streams, prepared.plan, options) as observer,
            ForkServers(
                launcher_for(options, prepared.variants, observer, streams.mask.secrets)
            ) as fork_servers,
        ):
            plan, servers = open_contenders(prepared, streams, fork_servers, stack, observer)
            variables = {*prepared.variants.environment_names, *options.inherit_environ}
            tasks = Tasks(plan, options, prepared.cluster, sorted(variables))
            store = ResultStore(plan, observer, files.write, options.fail_fast, files.begun)
            shootout = Shootout(tasks, store, fork_servers, servers)
            check_like(files, plan, shootout.expected_metadata, options)
            measured = None if options.list_only else measure(shootout, options)
        if measured is None:
            return show_plan(plan, streams)
        if measured.message:
            streams.complain(measured.message)
        everything = files.everything(measured.results)
        status = show_results(everything, to, plan.baseline, options, streams)
        status = status or measured.status
        if status != INTERRUPTED:
            status = status_of(judgements(measured, options), streams) or status
    return streams.status_after(status, files.combined)


def _guardian() -> Guardian:
    try:
        return Guardian()
    except OSError as error:
        raise UserError(f"no process can be started: {error.strerror}") from error
