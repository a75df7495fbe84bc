"""The contenders of a configuration: once, or several times where environments are compared.

``--against`` has each contender measured on several sides: as it is installed, and in each of the
environments that are named.  A side has its own private servers and its own ``$scratch``, so that
the sides write to databases of their own and can be measured in turn.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from zodbshootout.cli.options import Options
from zodbshootout.client.masking import Mask
from zodbshootout.client.specification import INSTALLED, Interpreter
from zodbshootout.config.configuration import Configuration, Source, parse
from zodbshootout.config.loader import OutsideSection
from zodbshootout.config.secrets import of_configuration
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.description import contenders_of
from zodbshootout.contenders.environment import Environment, of_section
from zodbshootout.contenders.making import CannotBeMade, Maker
from zodbshootout.contenders.modules import carry_to
from zodbshootout.contenders.private_servers import (
    check_servers_can_restart,
    users_of_servers,
)
from zodbshootout.contenders.selection import named
from zodbshootout.crews.interpreters import own_interpreter
from zodbshootout.errors import UserError
from zodbshootout.guardian import Guardian
from zodbshootout.servers.naming import given_names
from zodbshootout.servers.running import RunningServers, all_of, start_servers
from zodbshootout.servers.server import ServerContext


@dataclass(frozen=True)
class Variant:
    """A configuration with names of its own, and its contenders."""

    context: ServerContext
    configuration: Configuration
    contenders: Sequence[Contender]
    """Those that are to be measured."""

    def told(self, made_of: Mapping[str, str]) -> Variant:
        """Return the side with what its contenders' environments are made of, by their names."""
        contenders = [
            replace(each, made_of=made_of.get(each.environment, "")) for each in self.contenders
        ]
        return replace(self, contenders=contenders)

    def servers(self, stack: ExitStack, users: Iterable[Contender]) -> RunningServers:
        """Start the servers that those of the *users* need that are on this side."""
        names = {each.name for each in self.contenders}
        own = [each for each in users if each.name in names]
        return start_servers(
            stack, self.configuration, users_of_servers(self.configuration, own),
            self.context,
        )  # fmt: skip


@dataclass(frozen=True)
class Variants:
    """What is to be measured, wherever that is."""

    variants: Sequence[Variant]
    environments: Sequence[Environment]
    """Where contenders are opened, but for the Python of the command itself."""
    mask: Mask
    """Hides what is secret in what the environments are made of."""
    gevent: bool = False
    """Whether clients are greenlets."""
    on_hosts: bool = False
    """Whether the clients are elsewhere, so that the Python of the command is not patched."""

    @property
    def contenders(self) -> list[Contender]:
        """Return the contenders, those of one section beside each other."""
        return list(
            chain.from_iterable(
                zip(*(variant.contenders for variant in self.variants), strict=True)
            )
        )

    @property
    def context(self) -> ServerContext:
        """Return what the first side's servers share, and what is of no side."""
        return self.variants[0].context

    @property
    def outside(self) -> dict[str, OutsideSection]:
        """Return the sections that only other Pythons read, by the names of the contenders."""
        return {
            each.name: each for variant in self.variants for each in variant.configuration.outside
        }

    def located(self, maker: Maker) -> tuple[dict[str, Interpreter], dict[str, str]]:
        """Have the environments made; return where contenders are opened, by their names.

        The second are those that cannot be opened, with the reason.
        """
        interpreters: dict[str, Interpreter] = {}
        absent: dict[str, str] = {}
        modules = self.context.directory / "modules"
        if self.environments:
            carry_to(modules)
        for environment in self.environments:
            names = [each.name for each in self.contenders if each.environment == environment.name]
            try:
                interpreter = maker.interpreter(environment, modules)
            except CannotBeMade as error:
                absent |= dict.fromkeys(names, str(error))
            else:
                located = replace(interpreter, gevent=self.gevent)
                interpreters |= dict.fromkeys(names, located)
        if self.gevent and self.on_hosts:
            patched = own_interpreter(gevent=True)
            interpreters |= {each.name: patched for each in self.contenders if not each.environment}
        return interpreters, absent

    def check_servers_can_restart(self) -> None:
        """Check that a restart of the servers loses no data.

        :raises UserError: when it does, or when there is no such server
        """
        for variant in self.variants:
            check_servers_can_restart(variant.configuration, variant.contenders)

    def start_servers(self, stack: ExitStack, users: Sequence[Contender]) -> RunningServers:
        """Start the servers that *users* need; *stack* stops them."""
        return all_of([variant.servers(stack, users) for variant in self.variants])


def variants_of(
    source: Source, options: Options, places: ExitStack, guardian: Guardian, mask: Mask
) -> Variants:
    """Read a configuration for each side; directories and ports of a side go with *places*.

    :raises UserError: when it cannot be read
    :raises UserError: when the options do not suit it
    """
    compared = [Environment(INSTALLED), *options.against] if options.against else [None]
    variants = []
    for number, environment in enumerate(compared):
        directory = places.enter_context(_scratch_directory())
        guardian.watch_directory(directory)
        configuration = _read(source, directory, places, mask)
        names = configuration.names
        if environment is not None:
            _check_servers(configuration)
        contenders = _selected(contenders_of(configuration), options)
        _check_same_python(contenders, options)
        if environment is not None:
            contenders = _in(environment, contenders, first=not number)
        context = ServerContext(directory, source, names, guardian, max(options.sweep.concurrency))
        variants.append(Variant(context, configuration, contenders))
    described = map(of_section, variants[0].configuration.environments)
    known = {each.name: each for each in [*described, *filter(None, compared)]}
    used = dict.fromkeys(each.environment for variant in variants for each in variant.contenders)
    made_of = {name: mask(each.made_of) for name, each in known.items()}
    return Variants(
        [variant.told(made_of) for variant in variants],
        [known[name] for name in used if name], mask,
        options.gevent, options.hosts is not None,
    )  # fmt: skip


def _read(source: Source, directory: Path, places: ExitStack, mask: Mask) -> Configuration:
    """Read a configuration, with names that last as long as *places*.

    :raises UserError: when it cannot be read
    """
    listen: dict[str, str] = {}
    while True:
        names = places.enter_context(given_names(source, directory, listen))
        mask.hide(of_configuration(source.whole, names))
        configuration = parse(source, names)
        found = {each.name: each.listen for each in configuration.servers if each.listen}
        if found == listen:
            return configuration
        listen = found


def _selected(contenders: Sequence[Contender], options: Options) -> list[Contender]:
    """Return the contenders that ``--only`` names, or all.

    :raises UserError: if there is none, or a name is not that of a contender
    """
    names = [contender.name for contender in contenders]
    if not names:
        raise UserError(
            f"{options.path}: no contender; each is a section <zodb NAME> with a storage in it"
        )
    only = named("--only", options.only, names)
    return [each for each in contenders if each.name in (only or names)]


def _check_same_python(contenders: Sequence[Contender], options: Options) -> None:
    """Check that no contender is in another Python where the options are about this one.

    :raises UserError: when one is
    """
    option = "--leaks" if options.run.leaks else options.memory
    elsewhere = [each.name for each in contenders if each.environment]
    if option and elsewhere:
        raise UserError(
            f"{option} is about this Python, and {elsewhere[0]} is in another one; choose others "
            "with --only"
        )


def _check_servers(configuration: Configuration) -> None:
    """Check that each side can have servers of its own.

    :raises UserError: when one cannot be there twice
    """
    kept = [each.name for each in configuration.servers if each.directory]
    if kept:
        raise UserError(
            f"--against: server {kept[0]} keeps its data in a directory, and each side needs a "
            "server of its own; leave out the directory"
        )


@contextmanager
def _scratch_directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="zodbshootout-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def _in(
    environment: Environment, contenders: Sequence[Contender], *, first: bool
) -> list[Contender]:
    for each in contenders:
        if each.environment:
            raise UserError(
                f"--against: {each.name} is in environment {each.environment} already; choose "
                "others with --only"
            )
    return [
        replace(
            each,
            name=each.name if first else f"{each.name}@{environment.name}",
            environment=environment.name,
            beside="" if first else each.name,
            side=environment.name,
        )
        for each in contenders
    ]
