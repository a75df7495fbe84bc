"""Make the launcher of a run's workers, as the options say."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from operator import attrgetter

from zodbshootout.cli.options import Options
from zodbshootout.client.preparation import STEP_PREFIX
from zodbshootout.contenders.variants import Variants
from zodbshootout.crews.logs import LogSettings
from zodbshootout.errors import errors_of_files
from zodbshootout.scheduling.result_store import Observer
from zodbshootout.workers.coordinator import Launcher, TimeLimit
from zodbshootout.workers.measuring import LEAKS_PREFIX
from zodbshootout.workers.variables import default_affinity, worker_environment
from zodbshootout.workers.worker import PROFILE_PREFIX

OPENING = TimeLimit(60.0)
"""The time limit for opening a contender; ZEO's client gives up by itself after 30 seconds."""


def launcher_for(
    options: Options, variants: Variants, observer: Observer, secrets: Sequence[str]
) -> Launcher:
    """Return a launcher, whose workers keep *secrets* out of their logs.

    :raises UserError: if the directories of workers cannot be made
    """
    context = variants.context
    directory, temporary = context.directory / "workers", context.directory / "tmp"
    with errors_of_files():
        for path in (directory, temporary):
            path.mkdir(mode=0o700)
    hooks = [f"--hook={hook}" for hook in options.hooks]
    memory = [options.memory] if options.memory else []
    cpus = default_affinity() if options.affinity is None else options.affinity
    affinity = [f"--affinity={cpus}"] if cpus else []
    environment = worker_environment(
        os.environ,
        [*options.inherit_environ, *variants.environment_names],
        locale=not options.no_locale,
        copy_all=options.copy_env,
    )
    working = TimeLimit(options.timeout, "--timeout")
    return Launcher(
        directory=directory,
        guardian=context.guardian,
        # If a killed client leaves temporary files, they are removed with the run's directory.
        environment={**environment, "TMPDIR": str(temporary)},
        working=working,
        opening=min(OPENING, working, key=attrgetter("seconds")),
        python=options.python,
        options=[*hooks, *memory, *affinity, "--quiet"],
        affinity=cpus,
        logging=LogSettings(options.log, secrets),
        # With --hosts, a worker uses Dask's client, which gevent cannot patch.
        gevent=options.gevent and options.hosts is None,
        relay=_relay(options, observer),
        awaited=observer.relay,
    )


_PYPERF_LINE = re.compile(r"\w+: Mean \+- std dev: |$")
"""A pattern for the two lines that pyperf prints in every worker: a result and an empty line."""


def _relay(options: Options, observer: Observer) -> Callable[[str], None]:
    always = (LEAKS_PREFIX, PROFILE_PREFIX)
    everything = options.verbose or options.log is not None

    def relay(line: str) -> None:
        if line.startswith(STEP_PREFIX):
            observer.note(line.removeprefix(STEP_PREFIX))
        elif line.startswith(always) or (everything and not _PYPERF_LINE.match(line)):
            observer.relay(line)

    return relay
