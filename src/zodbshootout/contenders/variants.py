"""The configuration as it is measured: once, or with ``--against`` in several variants.

The first variant has the contenders as they are installed, each of the others has them in another
environment.  A variant has its own private servers and its own ``$scratch``, so that variants write
to databases of their own and can be measured in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from zodbshootout.client.masking import Mask
from zodbshootout.client.specification import INSTALLED, ClientKind, CrewShape, Interpreter
from zodbshootout.client.storage_info import Sharing
from zodbshootout.client.storages import sharing_of
from zodbshootout.config.configuration import Configuration, Source, parse
from zodbshootout.config.environment import Environment
from zodbshootout.config.secrets import of_configuration
from zodbshootout.contenders.contender import Contender, contenders_of
from zodbshootout.contenders.making import Maker, carry_to
from zodbshootout.contenders.selection import named
from zodbshootout.crews.interpreters import own_interpreter
from zodbshootout.errors import UserError
from zodbshootout.guardian import Guardian
from zodbshootout.servers.address import given_names
from zodbshootout.servers.running import RunningServers
from zodbshootout.servers.server import ServerContext


@dataclass(frozen=True)
class Variant:
    """A configuration with its own names of the run."""

    context: ServerContext
    configuration: Configuration
    environment: Environment | None
    """The environment of ``--against`` in which all contenders are opened."""


@dataclass(frozen=True)
class Variants:
    """All variants of a configuration, which have the same sections."""

    variants: Sequence[Variant]
    mask: Mask
    """Hides the secrets in the configuration."""

    @property
    def context(self) -> ServerContext:
        """The context of the first variant, and of what belongs to no variant."""
        return self.variants[0].context

    def contenders(self, only: Sequence[str] = ()) -> list[Contender]:
        """Return the contenders that the words of ``--only`` name, or without words all.

        The variants of one section are next to each other.
        """
        described = [
            contenders_of(variant.configuration, variant.environment) for variant in self.variants
        ]
        names = [contender.section.name for contender in described[0]]
        if not names:
            raise UserError(
                f"{self.context.source.path}: no contender; each is a section <zodb NAME> with a "
                "storage in it"
            )
        chosen = named("--only", only, names) or names
        contenders = [
            contender
            for contender in chain.from_iterable(zip(*described, strict=True))
            if contender.section.name in chosen
        ]
        for contender in contenders:
            if contender.variant and contender.section.environment:
                raise UserError(
                    f"--against: {contender.section.name} is in environment "
                    f"{contender.section.environment} already; choose others with --only"
                )
        return contenders

    def interpreters(
        self, contenders: Sequence[Contender], maker: Maker, crew: CrewShape
    ) -> tuple[dict[str, Interpreter], dict[str, str]]:
        """Make the environments; return the contenders' Pythons, by the contenders' names.

        The second mapping has the contenders that cannot be opened, with the reason.  If the
        clients of the *crew* are greenlets on other hosts, the Python of the command itself is not
        patched, and another process of it opens the contenders.
        """
        gevent = crew.client_kind is ClientKind.GREENLET
        interpreters: dict[str, Interpreter] = {}
        unavailable: dict[str, str] = {}
        modules = self.context.directory / "modules"
        if any(contender.environment for contender in contenders):
            carry_to(modules)
        names: dict[Environment | None, list[str]] = {}
        for contender in contenders:
            names.setdefault(contender.environment, []).append(contender.name)
        for environment, opened_there in names.items():
            if environment is not None:
                try:
                    interpreter = maker.interpreter(environment, modules)
                except UserError as error:
                    unavailable |= dict.fromkeys(opened_there, str(error))
                else:
                    patched = replace(interpreter, gevent=gevent)
                    interpreters |= dict.fromkeys(opened_there, patched)
            elif gevent and crew.hosts:
                interpreters |= dict.fromkeys(opened_there, own_interpreter(gevent=True))
        return interpreters, unavailable

    def start_servers(
        self, stack: ExitStack, users: Sequence[Contender], clients: int
    ) -> RunningServers:
        """Start the servers that *users* need; *stack* stops them.

        *clients* is the number of clients in the run's largest crew.
        """
        servers = RunningServers()
        for variant in self.variants:
            name = variant.environment.name if variant.environment else ""
            own = [contender for contender in users if contender.variant == name]
            users_of_servers = {
                server: [user.name for user in own if server.name in user.servers]
                for server in variant.configuration.servers
            }
            context = replace(variant.context, clients=clients)
            servers.start(stack, variant.configuration, users_of_servers, context)
        return servers


def check_servers_can_restart(contenders: Sequence[Contender]) -> None:
    """Check that the *contenders* have private servers, and that a restart loses no data."""
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
    for server in chain.from_iterable(contender.servers.values() for contender in served):
        if sharing_of(server) is Sharing.VOLATILE:
            raise UserError(
                f"{option}: server {server.name} would lose its data, which it keeps in memory"
            )


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
    """
    variants = []
    for environment in [Environment(INSTALLED), *against] if against else [None]:
        temporary = TemporaryDirectory(prefix="zodbshootout-", ignore_cleanup_errors=True)
        directory = Path(places.enter_context(temporary))
        guardian.watch_directory(directory)
        configuration = _read(source, directory, places, mask)
        for server in configuration.servers:
            if environment is not None and server.directory:
                raise UserError(
                    f"--against: server {server.name} keeps its data in a directory, and each "
                    "variant needs a server of its own; leave out the directory"
                )
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
