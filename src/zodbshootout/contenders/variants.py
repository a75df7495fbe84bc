"""The variants in which configurations are measured.

With ``--against``, the first variant uses the installed packages, and each other variant uses
another environment.  With ``--define``, names such as ``$host`` have different values in each
variant.  A variant has its own private servers and ``$scratch``, so that variants write to
different databases and can be measured in turn.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ZConfig
from ZConfig.substitution import substitute

from zodbshootout.client.storage_types import nested_sections
from zodbshootout.config.configuration import Configuration, parse
from zodbshootout.config.pythons import Environment
from zodbshootout.config.secrets import of_configuration
from zodbshootout.config.source import Source
from zodbshootout.contenders.contender import Contender, contenders_of
from zodbshootout.contenders.making import Maker, carry_to, uv_program
from zodbshootout.contenders.selection import named
from zodbshootout.errors import UserError, errors_of_files, suggestion
from zodbshootout.guardian import Guardian
from zodbshootout.model.masking import Mask
from zodbshootout.model.outcome import Failure
from zodbshootout.model.specification import INSTALLED, ClientKind, CrewShape, Interpreter
from zodbshootout.model.titles import Value, title_of
from zodbshootout.servers.address import given_names
from zodbshootout.servers.running import RunningServers
from zodbshootout.servers.server import ServerContext


@dataclass(frozen=True)
class Reading:
    """A configuration as read for one variant, and how to measure it."""

    context: ServerContext
    configuration: Configuration
    environment: Environment | None = None
    """The environment of ``--against`` in which all contenders are opened."""
    variant: Mapping[str, Value] = field(default_factory=dict)
    """What distinguishes the reading from other readings of the file, by axis: an environment of
    ``--against``, or values of ``--define``.  A number such as ``#1`` replaces a secret value."""
    rtt: float | None = None
    """The round-trip time in seconds of ``--rtt``; ``None`` without the option."""
    file: str = ""
    """A name for the file, if several files are read."""

    @property
    def title(self) -> str:
        """The title that distinguishes this reading from all other readings of all files."""
        return title_of(self.file, self.variant, self.rtt).strip()

    def contenders(self, chosen: Collection[str]) -> list[Contender]:
        """Return the contenders of the *chosen* sections, in file order.

        :raises UserError: if a package is missing for one of them
        """
        for name, flaw in self.configuration.flaws.items():
            if name in chosen:
                raise flaw
        contenders = [
            replace(contender, rtt=self._rtt_of(contender), reading=self.title)
            for contender in contenders_of(self.configuration)
            if contender.section.name in chosen
        ]
        if self.environment is None:
            return contenders
        for contender in contenders:
            if contender.environment:
                raise UserError(
                    f"--against: {contender.section.name} is already in environment "
                    f"{contender.section.environment}; choose others with --only"
                )
        return [
            replace(contender.in_environment(self.environment), variant=self.variant)
            for contender in contenders
        ]

    def _rtt_of(self, contender: Contender) -> float | None:
        """Return the time of ``--rtt``, unless it does not change the distance of a contender."""
        servers = chain(self.configuration.servers, self.configuration.external)
        kept = {server.name for server in servers if server.text.key("rtt")}
        named = {server.name for server in contender.storage.servers}
        is_moved = named - kept if named else contender.server_line != ""
        return self.rtt if is_moved else None


@dataclass(frozen=True)
class Environments:
    """The environments of a run."""

    interpreters: dict[Environment, Interpreter] = field(default_factory=dict)
    """The Pythons of working environments."""
    flaws: dict[Environment, str] = field(default_factory=dict)
    """The reasons why the other environments do not work."""

    def flaw_for(self, contender: Contender) -> Failure | None:
        """Return why the environment of a contender or of its server does not work, or ``None``."""
        for environment in environments_of([contender]):
            if flaw := self.flaws.get(environment):
                return Failure(flaw, state=environment.if_absent)
        return None

    def interpreter_for(self, contender: Contender, crew: CrewShape) -> Interpreter | None:
        """Return the Python that opens a contender; ``None`` if the command's process opens it.

        If the clients of *crew* are greenlets, gevent has to patch the process that opens the
        contender.  If such a crew has hosts, gevent cannot patch the command's process.  Another
        process of the command's own Python then opens a contender that has no environment.
        """
        gevent = crew.client_kind is ClientKind.GREENLET
        if contender.environment is not None:
            interpreter = self.interpreters.get(contender.environment)
            return interpreter and replace(interpreter, gevent=gevent)
        if gevent and crew.hosts:
            return Interpreter("", sys.executable, "", sees_ours=True, gevent=True)
        return None


def environments_of(contenders: Iterable[Contender]) -> list[Environment]:
    """Return the distinct environments of contenders and of their servers."""
    all_of_them = (
        environment
        for contender in contenders
        for environment in (contender.environment, *contender.server_environments.values())
    )
    return list(dict.fromkeys(filter(None, all_of_them)))


@dataclass(frozen=True)
class Variants:
    """All variants of the configurations."""

    of_files: Sequence[Sequence[Reading]]
    """The readings of each file; all readings of a file have the same sections."""

    @property
    def readings(self) -> list[Reading]:
        return list(chain.from_iterable(self.of_files))

    @property
    def context(self) -> ServerContext:
        """The context of the first reading, which also serves the run as a whole."""
        return self.readings[0].context

    @property
    def environment_names(self) -> frozenset[str]:
        """The environment variables to which any configuration refers."""
        sources = (reading.context.source for reading in self.readings)
        return frozenset(chain.from_iterable(source.environment_names for source in sources))

    def contenders(self, only: Sequence[str] = ()) -> list[Contender]:
        """Return the contenders chosen with ``--only``, or all contenders if *only* is empty.

        The variants of a section are adjacent.  A name that occurs in several files is preceded by
        the name of the file: ``FILE:NAME``.
        """
        names = [_names(readings[0]) for readings in self.of_files]
        count = Counter(chain.from_iterable(names))
        prefixes = [
            {name: f"{readings[0].file}:" if count[name] > 1 else "" for name in own}
            for readings, own in zip(self.of_files, names, strict=True)
        ]
        all_names = [f"{prefix}{name}" for own in prefixes for name, prefix in own.items()]
        chosen = named("--only", only, all_names) or all_names
        contenders = []
        for readings, own in zip(self.of_files, prefixes, strict=True):
            sections = [name for name, prefix in own.items() if f"{prefix}{name}" in chosen]
            contenders += [
                replace(contender, name=f"{own[contender.name]}{contender.name}")
                for contender in _contenders(readings, sections)
            ]
        return contenders

    def make_environments(self, contenders: Sequence[Contender], maker: Maker) -> Environments:
        """Create the environments that contenders and their servers need.

        :raises UserError: if uv is not installed, or our modules cannot be copied
        """
        environments = environments_of(contenders)
        if any(environment.requirements for environment in environments):
            uv_program()
        modules = self.context.directory / "modules"
        if environments:
            with errors_of_files():
                carry_to(modules)
        made = Environments()
        for environment in environments:
            try:
                made.interpreters[environment] = maker.interpreter(environment, modules)
            except UserError as error:
                made.flaws[environment] = str(error)
        return made

    def start_servers(
        self,
        stack: ExitStack,
        users: Sequence[Contender],
        clients: int,
        environments: Environments,
    ) -> RunningServers:
        """Start the servers that *users* need; *stack* will stop the servers.

        *clients* is the number of clients in the run's largest crew.
        """
        servers = RunningServers()
        for reading in self.readings:
            own = [contender for contender in users if contender.reading == reading.title]
            users_of_servers = {
                server: [user.title for user in own if server.name in user.servers]
                for server in reading.configuration.servers
            }
            pythons = {
                name: environments.interpreters[environment]
                for user in own
                for name, environment in user.server_environments.items()
            }
            context = replace(reading.context, clients=clients, pythons=pythons)
            servers.start(stack, reading.configuration, users_of_servers, context)
        return servers


def _names(reading: Reading) -> list[str]:
    names = [section.name for section, _ in reading.configuration.contenders]
    if not names:
        raise UserError(
            f"{reading.context.source.path}: no contender; write a section <zodb NAME> that "
            "contains a storage"
        )
    return names


def _contenders(readings: Sequence[Reading], chosen: Collection[str]) -> list[Contender]:
    """Return the contenders of the *chosen* sections in all readings of a file."""
    by_section = zip(*(reading.contenders(chosen) for reading in readings), strict=True)
    if readings[0].environment:
        return list(chain.from_iterable(by_section))
    values = [reading.variant for reading in readings]
    return [contender for section in by_section for contender in _with_values(section, values)]


def _with_values(
    variants: Sequence[Contender], values: Sequence[Mapping[str, Any]]
) -> list[Contender]:
    """Return a section's distinct *variants*, each with the values in which they differ."""
    different = {contender.description: n for n, contender in reversed([*enumerate(variants)])}
    chosen = sorted(different.values())
    differing = [
        [name for name, value in values[first].items() if value != values[other][name]]
        for first, other in product(chosen, chosen)
    ]
    using = [name for name in values[0] if [name] in differing]
    return [
        replace(variants[number], variant={name: values[number][name] for name in using})
        for number in chosen
    ]


@dataclass(frozen=True)
class VariantOptions:
    """The options that ask for variants."""

    against: Sequence[Environment] = ()
    """The environments in which to measure each contender after the installed one."""
    definitions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The values of ``--define``, by name; all combinations are measured."""
    rtts: Sequence[float] = ()
    """The round-trip times between clients and servers, in seconds; all are measured."""


def read_variants(
    sources: Sequence[Source],
    options: VariantOptions,
    places: ExitStack,
    guardian: Guardian,
    mask: Mask,
) -> Variants:
    """Read each configuration once per variant.

    The variants' directories and ports exist until *places* is closed.  *mask* hides the secrets
    of the configurations from now on.
    """
    of_files = []
    for source, file in zip(sources, _short_names(sources), strict=True):
        used = {
            name: values
            for name, values in options.definitions.items()
            if not any(name in other.used_names for other in sources) or name in source.used_names
        }
        of_file = VariantOptions(options.against, used, options.rtts)
        readings = _read_file(source, of_file, places, guardian, mask)
        of_files.append([replace(reading, file=file) for reading in readings])
    return Variants(of_files)


def _short_names(sources: Sequence[Source]) -> list[str]:
    """Return a distinct name for each file: the end of its path, no longer than necessary.

    A single file has the name "".
    """
    if len(sources) == 1:
        return [""]
    parts = [source.path.absolute().parts for source in sources]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            break
    return names


def _read_file(
    source: Source, options: VariantOptions, places: ExitStack, guardian: Guardian, mask: Mask
) -> list[Reading]:
    against, definitions = options.against, options.definitions
    readings = []
    for environment in [Environment(INSTALLED), *against] if against else [None]:
        rtts: Sequence[float | None] = options.rtts or [None]
        for values, rtt in product([*product(*definitions.values())], rtts):
            defined = dict(zip(definitions, values, strict=True))
            temporary = TemporaryDirectory(prefix="zodbshootout-", ignore_cleanup_errors=True)
            # If TMPDIR is relative, so is the path; servers have another current directory.
            directory = Path(places.enter_context(temporary)).absolute()
            guardian.watch_directory(directory)
            own = replace(source, definitions=defined)
            configuration = _read(own, directory, places, mask)
            for server in chain(configuration.servers, configuration.external):
                server.rtt = rtt if server.rtt is None else server.rtt
            context = ServerContext(directory, own, configuration.names, guardian)
            variant = environment.variant if environment and environment in against else defined
            readings.append(Reading(context, configuration, environment, variant, rtt))
    # All secrets are known only after all readings.
    readings = [
        replace(reading, variant=_shown(reading.variant, definitions, mask)) for reading in readings
    ]
    if len(readings) > 1:
        option = "--rtt" if len(options.rtts) > 1 else "--define"
        _check_places(readings, "--against" if against else option)
    return readings


def _shown(
    variant: Mapping[str, Value], definitions: Mapping[str, Sequence[str]], mask: Mask
) -> dict[str, Value]:
    """Return a variant without names that have only one value.

    If any of a name's values is secret, the number of this variant's value takes its place.
    """
    shown = {axis: value for axis, value in variant.items() if axis not in definitions}
    for name, all_values in definitions.items():
        if len(all_values) > 1:
            is_secret = any(mask(value) != value for value in all_values)
            number = all_values.index(str(variant[name])) + 1
            shown[name] = f"#{number}" if is_secret else variant[name]
    return shown


def _check_places(readings: Sequence[Reading], option: str) -> None:
    """Check that no two variants have servers that keep their data in the same place."""
    of_others: set[str] = set()
    for reading in readings:
        places = dict(_places_of_data(reading.configuration))
        for place, server in places.items():
            if place in of_others:
                raise UserError(
                    f"{option}: server {server} keeps its data in {place}, but each variant needs "
                    "its own server and data; name a place below $scratch instead"
                )
        of_others.update(places)


def _places_of_data(configuration: Configuration) -> Iterator[tuple[str, str]]:
    """Yield the directories and files that servers write to, with the servers' names."""
    for server in configuration.servers:
        if server.directory:
            yield server.directory, server.name
        for section in nested_sections(server):
            path = getattr(section.config, "path", None)
            if isinstance(path, str) and not getattr(section.config, "read_only", False):
                yield path, server.name


def _check_definitions(source: Source, names: Mapping[str, str]) -> None:
    """Check that the file uses all definitions, and that they do not redefine the run's *names*."""
    for name in source.definitions:
        if name in names:
            raise UserError(f"--define: ${name} belongs to the run; choose another name")
        used = sorted(source.used_names.difference(names))
        if name not in used:
            _check_not_of_environment(source, name)
            advice = suggestion(name, used) if used else "the file uses no names"
            raise UserError(f"--define: nothing in {source.path} uses ${name}; {advice}")
    defined = dict(names)
    for name, value in source.definitions.items():
        try:
            defined[name] = substitute(value, defined)
        except ZConfig.ConfigurationError:
            raise UserError(
                f"--define: the value of {name} is invalid; write a literal $ as $$"
            ) from None  # ZConfig's error may show a secret


def _check_not_of_environment(source: Source, name: str) -> None:
    for variable in source.environment_names:
        if variable.lower() == name:
            raise UserError(
                f"--define: {source.path} takes {variable} from the environment; begin the "
                f"file with '%define {name} $({variable})', and replace the other $({variable}) by "
                f"${name}"
            )


def _read(source: Source, directory: Path, places: ExitStack, mask: Mask) -> Configuration:
    """Read a configuration; its ports stay reserved until *places* is closed."""
    mask.hide(of_configuration(source.original.keys, {}))
    names = places.enter_context(given_names(source, directory))
    _check_definitions(source, names)
    mask.hide(of_configuration(source.tree.keys, names))
    return parse(source, names)
