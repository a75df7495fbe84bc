"""``zodbshootout sample``: list the installed configurations and workloads, or print one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from zodbshootout.cli.arguments import option
from zodbshootout.cli.output import Streams
from zodbshootout.config.sample_files import samples, workloads
from zodbshootout.errors import UserError, suggestion

TITLES = {
    "import": "6,000 objects, added to two indexes in 60 transactions",
    "plone": "Plone 6.1, four threads: pages, search, adding documents",
    "sessions": "pages, sessions and a counter, four threads",
}
"""The titles of the workloads.  The title of a configuration is its first line."""


@dataclass(frozen=True)
class SampleOptions:
    """List the configurations and the recorded workloads that are installed, or print one.

    A name in the list can take the place of FILE, or follow --workload.
    """

    name: str | None = option("NAME", nargs="?", help="the sample to print")


def run(options: SampleOptions, streams: Streams) -> int:
    """Print the list, or the sample that the user names; return the exit status.

    :raises UserError: if there is no such file, or it cannot be printed on a terminal
    """
    name = options.name
    if name is None:
        for line in _listing():
            streams.say(line)
    elif name in samples():
        streams.out.file.write(samples()[name].read_text(encoding="utf-8"))
    elif name not in workloads():
        names = [*samples(), *workloads()]
        raise UserError(f"there is no sample {name!r}; {suggestion(name, names)}")
    elif streams.out.file.isatty():
        raise UserError(
            f"{name} is not text; write it to a file: zodbshootout sample {name} > {name}.workload"
        )
    else:
        streams.write(workloads()[name].read_bytes())
    return 0


def _listing() -> Iterator[str]:
    yield "Configurations, each in place of FILE:"
    for name, path in samples().items():
        yield f"  {name:16}{_title(path)}"
    yield "Workloads, for --workload:"
    for name in workloads():
        yield f"  {name:16}{TITLES[name]}"
    yield "Next:"
    yield "  zodbshootout fs-sample -c 2 --threads"
    yield "  zodbshootout sample fs-sample > my.conf"
    yield "  zodbshootout --workload plone"


def _title(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.readline().strip("#. \n")
