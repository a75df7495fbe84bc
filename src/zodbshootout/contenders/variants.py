"""The configuration as it is measured: once, or with ``--against`` in several variants.

The first variant has the contenders as they are installed, each of the others has them in another
environment.  A variant has its own private servers and its own ``$scratch``, so that variants write
to databases of their own and can be measured in turn.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TypeVar

from zodbshootout.client.masking import Mask
from zodbshootout.client.specification import INSTALLED, ClientKind, CrewShape, Interpreter
from zodbshootout.client.storage_info import Sharing
from zodbshootout.client.storages import sharing_of
from zodbshootout.config.configuration import Configuration, Source, parse
from zodbshootout.config.loader import SectionText
from zodbshootout.config.secrets import of_configuration
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.description import contenders_of, name_in
from zodbshootout.contenders.environment import Environment, of_section
from zodbshootout.contenders.making import Maker, carry_to
from zodbshootout.contenders.selection import named
from zodbshootout.crews.cluster import Cluster
from zodbshootout.crews.interpreters import own_interpreter
from zodbshootout.errors import UserError
from zodbshootout.guardian import Guardian
from zodbshootout.servers.address import given_names
from zodbshootout.servers.running import (
    RunningServers,
    all_of,
    start_servers,
)
from zodbshootout.servers.server import ServerContext

T = TypeVar("T")


@dataclass(frozen=True)
class Variant:
    """A configuration with its own names of the run."""

    context: ServerContext
    configuration: Configuration
    environment: Environment | None
    """The environment of ``--against`` in which all contenders are opened."""

    @property
    def texts(self) -> list[SectionText]:
        """The contenders' sections."""
        return [text for text, _ in self.configuration.contenders]

    def only(self, names: Sequence[str]) -> Variant:
        """Return the variant with those of its contenders whose sections have these *names*."""
        contenders = [pair for pair in self.configuration.contenders if pair[0].name in names]
        return replace(self, configuration=replace(self.configuration, contenders=contenders))

    def start_servers(
        self, stack: ExitStack, users: Sequence[Contender], clients: int
    ) -> RunningServers:
        """Start the servers that those of the *users* need which are contenders of this variant."""
        names = {name_in(self.environment, text.name) for text in self.texts}
        own = [contender for contender in users if contender.name in names]
        users_of_servers = {
            server.name: [contender.name for contender in own if server.name in contender.servers]
            for server in self.configuration.servers
        }
        context = replace(self.context, clients=clients)
        return start_servers(stack, self.configuration, users_of_servers, context)


@dataclass(frozen=True)
class Variants:
    """All variants of a configuration, which have the same sections."""

    variants: Sequence[Variant]
    mask: Mask
    """Hides secrets in what the environments are made of."""

    def selected(self, only: Sequence[str]) -> Variants:
        """Return the variants with the contenders that the words of ``--only`` name, or all.

        :raises UserError: if there are no such contenders, or they cannot have variants
        """
        first = self.variants[0]
        names = [text.name for text in first.texts]
        if not names:
            raise UserError(
                f"{first.context.source.path}: no contender; each is a section <zodb NAME> with a "
                "storage in it"
            )
        chosen = named("--only", only, names) or names
        variants = [variant.only(chosen) for variant in self.variants]
        for text in variants[0].texts:
            if first.environment is not None and text.environment:
                raise UserError(
                    f"--against: {text.name} is in environment {text.environment} already; choose "
                    "others with --only"
                )
        return replace(self, variants=variants)

    @property
    def context(self) -> ServerContext:
        """The context of the first variant, and of what belongs to no variant."""
        return self.variants[0].context

    @property
    def names(self) -> list[str]:
        """The names of the contenders, the variants of one section next to each other."""
        return _interleaved(
            [name_in(variant.environment, text.name) for text in variant.texts]
            for variant in self.variants
        )

    def contenders(self, cluster: Cluster | None = None) -> list[Contender]:
        """Return the contenders as the sections describe them, in the order of their names.

        Their clients live on the hosts of the *cluster*, if there is one.
        """
        return _interleaved(
            contenders_of(variant.configuration, variant.environment, cluster, self.mask)
            for variant in self.variants
        )

    @property
    def texts(self) -> dict[str, SectionText]:
        """The contenders' sections, by the contenders' names."""
        return {
            name_in(variant.environment, text.name): text
            for variant in self.variants
            for text in variant.texts
        }

    def environments(self) -> dict[str, Environment]:
        """Return the environments in which contenders are opened, by the contenders' names."""
        environments = {}
        for variant in self.variants:
            sections = {
                environment.name: environment for environment in variant.configuration.environments
            }
            for text in variant.texts:
                name = name_in(variant.environment, text.name)
                if variant.environment is not None:
                    environments[name] = variant.environment
                elif text.environment:
                    environments[name] = of_section(sections[text.environment])
        return environments

    def interpreters(
        self, maker: Maker, crew: CrewShape
    ) -> tuple[dict[str, Interpreter], dict[str, str]]:
        """Make the environments; return the contenders' Pythons, by the contenders' names.

        The second mapping has the contenders that cannot be opened, with the reason.  If the
        clients of the *crew* are greenlets on other hosts, the Python of the command itself is not
        patched, and another process of it opens the contenders.
        """
        gevent = crew.client_kind is ClientKind.GREENLET
        interpreters: dict[str, Interpreter] = {}
        unavailable: dict[str, str] = {}
        environments = self.environments()
        modules = self.context.directory / "modules"
        if environments:
            carry_to(modules)
        for environment in dict.fromkeys(environments.values()):
            names = [name for name, candidate in environments.items() if candidate == environment]
            try:
                interpreter = maker.interpreter(environment, modules)
            except UserError as error:
                unavailable |= dict.fromkeys(names, str(error))
            else:
                interpreters |= dict.fromkeys(names, replace(interpreter, gevent=gevent))
        if gevent and crew.hosts:
            patched = own_interpreter(gevent=True)
            interpreters |= {name: patched for name in self.names if name not in environments}
        return interpreters, unavailable

    def check_servers_can_restart(self, contenders: Sequence[Contender]) -> None:
        """Check that a restart of the servers of *contenders* loses no data.

        :raises UserError: if it does, or if there is no such server
        """
        check_servers_can_restart(self.variants[0].configuration, contenders)

    def start_servers(
        self, stack: ExitStack, users: Sequence[Contender], clients: int
    ) -> RunningServers:
        """Start the servers that *users* need; *stack* stops them.

        *clients* is the number of clients in the run's largest crew.
        """
        return all_of([variant.start_servers(stack, users, clients) for variant in self.variants])


def check_servers_can_restart(
    configuration: Configuration, contenders: Sequence[Contender]
) -> None:
    """Check that a restart of the servers that *contenders* need loses no data.

    :raises UserError: if it does, or if there is no such server
    """
    option = "--restart-servers"
    served = [contender for contender in contenders if contender.servers]
    if not served:
        raise UserError(f"{option}: no contender has a server that the run starts")
    for contender in served:
        if contender.info.sharing is Sharing.VOLATILE:
            raise UserError(
                f"{option}: {contender.name} would lose its data, which it keeps in memory; leave "
                "it out with --only"
            )
    needed = {name for contender in served for name in contender.servers}
    for server in configuration.servers:
        if server.name in needed and sharing_of(server) is Sharing.VOLATILE:
            raise UserError(
                f"{option}: server {server.name} would lose its data, which it keeps in memory"
            )


def _interleaved(lists: Iterable[list[T]]) -> list[T]:
    return list(chain.from_iterable(zip(*lists, strict=True)))


def read_variants(
    source: Source,
    against: Sequence[Environment],
    places: ExitStack,
    guardian: Guardian,
    mask: Mask,
) -> Variants:
    """Read a configuration once for each variant.

    :param against: the environments of ``--against``
    :param places: keeps the directories and the ports of the variants
    :param mask: hides the secrets of the configuration from now on
    :raises UserError: if the configuration cannot be read, or a server cannot have variants
    """
    variants = []
    for environment in [Environment(INSTALLED), *against] if against else [None]:
        directory = places.enter_context(_scratch_directory())
        guardian.watch_directory(directory)
        configuration = _read(source, directory, places, mask)
        if environment is not None:
            _check_own_servers(configuration)
        context = ServerContext(directory, source, configuration.names, guardian)
        variants.append(Variant(context, configuration, environment))
    return Variants(variants, mask)


def _read(source: Source, directory: Path, places: ExitStack, mask: Mask) -> Configuration:
    """Read a configuration with names that last as long as *places*.

    The addresses among the names depend on the ``listen`` keys, which are known once it is read.
    """
    listen: dict[str, str] = {}
    while True:
        names = places.enter_context(given_names(source, directory, listen))
        mask.hide(of_configuration(source.whole, names))
        configuration = parse(source, names)
        configured = {
            server.name: server.listen for server in configuration.servers if server.listen
        }
        if configured == listen:
            return configuration
        listen = configured


def _check_own_servers(configuration: Configuration) -> None:
    """Check that each variant can have its own servers.

    :raises UserError: if it cannot
    """
    for server in configuration.servers:
        if server.directory:
            raise UserError(
                f"--against: server {server.name} keeps its data in a directory, and each variant "
                "needs a server of its own; leave out the directory"
            )


@contextmanager
def _scratch_directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="zodbshootout-", ignore_cleanup_errors=True) as name:
        yield Path(name)
