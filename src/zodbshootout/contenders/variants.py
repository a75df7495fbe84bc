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

import ZConfig
from ZConfig.substitution import substitute

from zodbshootout.client.masking import Mask
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
from zodbshootout.model.outcome import Failure
from zodbshootout.model.specification import (
    INSTALLED,
    RTT,
    ClientKind,
    CrewShape,
    Interpreter,
    duration,
    variant_name,
)
from zodbshootout.servers.address import given_names
from zodbshootout.servers.running import RunningServers
from zodbshootout.servers.server import ServerContext


@dataclass(frozen=True)
class Variant:
    """A configuration as read for this variant, and how to measure it."""

    context: ServerContext
    configuration: Configuration
    environment: Environment | None = None
    """The environment of ``--against`` in which all contenders are opened."""
    definitions: Mapping[str, str] = field(default_factory=dict)
    """The names to which ``--define`` or ``--rtt`` gives several values, and their values in this
    variant.  A number such as ``#1`` replaces a secret value."""
    rtt: float = 0.0
    """The round-trip time in seconds to add between clients and servers."""
    file: str = ""
    """A name for the file, if several files are read."""
    is_base: bool = False
    """Whether variants in other environments are compared to this variant."""

    @property
    def title(self) -> str:
        """The name that distinguishes this variant from all other variants of all files."""
        return f"{self.file} {self.name}".strip()

    @property
    def name(self) -> str:
        """The name that distinguishes this variant of a file; empty for a single variant."""
        if self.environment:
            return self.environment.name
        return variant_name("", self.definitions).strip()

    def contenders(self, chosen: Collection[str]) -> list[Contender]:
        """Return the contenders of the *chosen* sections, in file order."""
        contenders = [
            contender.at_distance(self.rtt, self.title)
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
        contenders = [contender.in_environment(self.environment) for contender in contenders]
        if self.is_base:
            return contenders
        return [
            replace(contender, name=f"{contender.name}@{self.name}", variant_of=contender.name)
            for contender in contenders
        ]


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

    of_files: Sequence[Sequence[Variant]]
    """The variants of each file; all variants of a file have the same sections."""
    mask: Mask
    """The mask that hides the secrets in the configurations."""

    @property
    def variants(self) -> list[Variant]:
        return [variant for variants in self.of_files for variant in variants]

    @property
    def context(self) -> ServerContext:
        """The context of the first variant, which also serves the run as a whole."""
        return self.variants[0].context

    @property
    def environment_names(self) -> frozenset[str]:
        """The environment variables to which any variant of a configuration refers."""
        sources = (variant.context.source for variant in self.variants)
        return frozenset(chain.from_iterable(source.environment_names for source in sources))

    def contenders(self, only: Sequence[str] = ()) -> list[Contender]:
        """Return the contenders chosen with ``--only``, or all contenders if *only* is empty.

        The variants of a section are adjacent.  A name that occurs in several files is preceded by
        the name of the file: ``FILE:NAME``.
        """
        names = [_names(variants[0]) for variants in self.of_files]
        count = Counter(chain.from_iterable(names))
        prefixes = [
            {name: f"{variants[0].file}:" if count[name] > 1 else "" for name in own}
            for variants, own in zip(self.of_files, names, strict=True)
        ]
        all_names = [f"{prefix}{name}" for own in prefixes for name, prefix in own.items()]
        chosen = named("--only", only, all_names) or all_names
        contenders = []
        for variants, own in zip(self.of_files, prefixes, strict=True):
            sections = [name for name, prefix in own.items() if f"{prefix}{name}" in chosen]
            for contender in _contenders(variants, sections):
                prefix, original = own[contender.section.name], contender.variant_of
                name, original = f"{prefix}{contender.name}", original and f"{prefix}{original}"
                contenders.append(replace(contender, name=name, variant_of=original))
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
        for variant in self.variants:
            own = [contender for contender in users if contender.variant == variant.title]
            users_of_servers = {
                server: [user.name for user in own if server.name in user.servers]
                for server in variant.configuration.servers
            }
            pythons = {
                name: environments.interpreters[environment]
                for user in own
                for name, environment in user.server_environments.items()
            }
            context = replace(variant.context, clients=clients, pythons=pythons)
            servers.start(stack, variant.configuration, users_of_servers, context)
        return servers


def _names(variant: Variant) -> list[str]:
    names = [section.name for section, _ in variant.configuration.contenders]
    if not names:
        raise UserError(
            f"{variant.context.source.path}: no contender; write a section <zodb NAME> that "
            "contains a storage"
        )
    return names


def _contenders(variants: Sequence[Variant], chosen: Collection[str]) -> list[Contender]:
    """Return the contenders of the *chosen* sections in all variants of a file."""
    by_section = zip(*(variant.contenders(chosen) for variant in variants), strict=True)
    if not variants[0].definitions:
        return list(chain.from_iterable(by_section))
    definitions = [variant.definitions for variant in variants]
    return [contender for section in by_section for contender in _with_values(section, definitions)]


def _with_values(
    variants: Sequence[Contender], definitions: Sequence[Mapping[str, str]]
) -> list[Contender]:
    """Return a section's distinct *variants*, named after the values in which they differ."""
    different = {contender.description: n for n, contender in reversed([*enumerate(variants)])}
    chosen = sorted(different.values())
    if len(chosen) == 1:
        return [variants[0]]
    differing = [
        [name for name, value in definitions[first].items() if value != definitions[other][name]]
        for first, other in product(chosen, chosen)
    ]
    using = [name for name in definitions[0] if [name] in differing]
    named_after_values: list[Contender] = []
    for number in chosen:
        values = {name: definitions[number][name] for name in using}
        contender = replace(variants[number], definitions=values)
        name = variant_name(contender.name, values)
        original = named_after_values[0].name if named_after_values else ""
        named_after_values.append(replace(contender, name=name, variant_of=original))
    return named_after_values


@dataclass(frozen=True)
class VariantOptions:
    """The options that ask for variants."""

    against: Sequence[Environment] = ()
    """The environments in which to measure each contender again."""
    definitions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The values of ``--define``, by name; all combinations are measured."""
    rtts: Sequence[float] = ()
    """The round-trip times between clients and servers, in seconds; all are measured."""
    base: Environment = field(default_factory=lambda: Environment(INSTALLED))
    """The environment in which each contender is measured first, before :attr:`against`."""


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
        variants = _read_file(source, replace(options, definitions=used), places, guardian, mask)
        of_files.append([replace(variant, file=file) for variant in variants])
    return Variants(of_files, mask)


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
) -> list[Variant]:
    against, definitions = options.against, options.definitions
    variants = []
    for environment in [options.base, *against] if against else [None]:
        for values, rtt in product([*product(*definitions.values())], options.rtts or [0.0]):
            defined = dict(zip(definitions, values, strict=True))
            temporary = TemporaryDirectory(prefix="zodbshootout-", ignore_cleanup_errors=True)
            directory = Path(places.enter_context(temporary))
            guardian.watch_directory(directory)
            own = replace(source, definitions=defined)
            configuration = _read(own, directory, places, mask)
            context = ServerContext(directory, own, configuration.names, guardian)
            variant = Variant(context, configuration, environment, defined, rtt)
            variants.append(replace(variant, is_base=environment is options.base))
    variants = [
        replace(variant, definitions=_shown(variant.definitions, definitions, mask))
        for variant in variants
    ]
    if len(options.rtts) > 1:
        variants = [
            replace(variant, definitions={**variant.definitions, RTT: duration(variant.rtt)})
            for variant in variants
        ]
    if len(variants) > 1:
        option = "--rtt" if len(options.rtts) > 1 else "--define"
        _check_places(variants, "--against" if against else option)
    return variants


def _shown(
    values: Mapping[str, str], definitions: Mapping[str, Sequence[str]], mask: Mask
) -> dict[str, str]:
    """Return this variant's value of each name that has several values.

    If any of a name's values is secret, return the number of this variant's value instead.
    """
    shown = {}
    for name, all_values in definitions.items():
        if len(all_values) > 1:
            is_secret = any(mask(value) != value for value in all_values)
            number = all_values.index(values[name]) + 1
            shown[name] = f"#{number}" if is_secret else values[name]
    return shown


def _check_places(variants: Sequence[Variant], option: str) -> None:
    """Check that no two variants have servers that keep their data in the same place."""
    of_others: set[str] = set()
    for variant in variants:
        places = dict(_places_of_data(variant.configuration))
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
