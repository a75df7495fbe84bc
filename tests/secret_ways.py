"""Configurations whose secrets take every way to every place."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

IMPORT = "%import relstorage\n"
ENVIRONMENT = f"<environment here>\npython {sys.executable}\n</environment>\n"
CONTENDERS = {
    "zeo": "<zodb {name}>\n<zeoclient>\nserver localhost:1\n{line}\n</zeoclient>\n</zodb>\n",
    "uri": "<zodburi {name}>\n{line}\n</zodburi>\n",
    "sql": "<zodb {name}>\n{line}\n<mappingstorage/>\n</zodb>\n",
    "elsewhere": ("<zodb {name}>\nenvironment here\n<s3storage>\n{line}\n</s3storage>\n</zodb>\n"),
    **{
        adapter: f"<zodb {{name}}>\n<relstorage>\n<{adapter}>\n{{line}}\n</{adapter}>\n"
        "</relstorage>\n</zodb>\n"
        for adapter in ("postgresql", "mysql", "oracle")
    },
}
"""Contenders with a *line* that holds a secret."""


def in_dsn(password: str) -> str:
    return password.replace("\\", "\\\\").replace("'", "\\'")


def bare_in_dsn(password: str) -> str:
    return in_dsn(password).replace(" ", "\\ ")


def in_sql(password: str) -> str:
    return password.replace("'", "''")


def in_uri(password: str) -> str:
    return quote(password, safe="")


@dataclass(frozen=True)
class Place:
    """A line of a contender that can hold a secret."""

    contender: str
    line: str
    spell: Callable[[str], str] = str
    """How a password is written there."""

    def text(self, name: str, line: str) -> str:
        """Return a contender with this *line*."""
        return CONTENDERS[self.contender].format(name=name, line=line)


PLACES = {
    "zeo": Place("zeo", "password {}"),
    "mysql": Place("mysql", "passwd {}"),
    "oracle": Place("oracle", "password {}\ndsn x\nuser u"),
    "quoted": Place("postgresql", "dsn host='h' password='{}' dbname='x'", in_dsn),
    "bare": Place("postgresql", "dsn host=h password={} dbname=x", bare_in_dsn),
    "url": Place("postgresql", "dsn postgresql://u:{}@h/x?application_name=x", in_uri),
    "parameter": Place(
        "postgresql", "dsn postgresql://h/x?application_name=x&user=u&password={}", in_uri
    ),
    "uri": Place("uri", "uri postgres://u:{}@h:5432/x", in_uri),
    "zeo_uri": Place("uri", "uri zeo://h:1?username=u&password={}", in_uri),
    "demo_uri": Place("uri", "uri demo:(zeo://h:1?password={})/(memory://)", in_uri),
    "elsewhere": Place("elsewhere", "s3-sse-customer-key {}"),
    "sql": Place("sql", "sql ALTER ROLE u PASSWORD '{}'", in_sql),
}
SPELLINGS = ("qz7w", "Qz-Geheimnis.0815", "qz$7w$$9", "qz 7w's", r"q\z'7 %w@/:?#9")


@dataclass
class Files:
    """A configuration that is written, with the variables and options that it needs."""

    directory: Path
    text: str = IMPORT + ENVIRONMENT
    variables: dict[str, str] = field(default_factory=dict)
    options: list[str] = field(default_factory=list)

    def add(self, name: str, place: Place, value: str) -> None:
        """Add a contender whose secret is written as *value*, such as ``$name``."""
        self.text += place.text(name, place.line.format(value))

    def include(self, name: str, place: Place, value: str, path: str) -> None:
        file = self.directory / f"{name}.conf"
        file.write_text(f"{place.line.format(value)}\n")
        self.text += place.text(name, f"%include {path}{file.name}")


def literal(files: Files, name: str, place: Place, value: str) -> None:
    files.add(name, place, value)


def defined(files: Files, name: str, place: Place, value: str) -> None:
    files.text += f"%define Value_{name} {value}\n"
    files.add(name, place, f"${{value_{name}}}")


def defined_by_others(files: Files, name: str, place: Place, value: str) -> None:
    files.text += f"%define one_{name} {value}\n%define two_{name} $one_{name}\n"
    files.add(name, place, f"$two_{name}")


def defined_in_parts(files: Files, name: str, place: Place, value: str) -> None:
    files.text += f"%define one_{name} {value[:2]}\n%define two_{name} {value[2:]}\n"
    files.add(name, place, f"$one_{name}$two_{name}")


def whole_line_defined(files: Files, name: str, place: Place, value: str) -> None:
    key, _, rest = place.line.format(value).partition(" ")
    first, *others = rest.split("\n")
    files.text += f"%define line_{name} {first}\n"
    files.text += place.text(name, "\n".join([f"{key} $line_{name}", *others]))


def included(files: Files, name: str, place: Place, value: str) -> None:
    files.include(name, place, value, "")


def included_by_a_defined_path(files: Files, name: str, place: Place, value: str) -> None:
    files.text += f"%define there_{name} {files.directory}\n"
    files.include(name, place, value, f"$there_{name}/")


def included_twice(files: Files, name: str, place: Place, value: str) -> None:
    (files.directory / f"values_{name}.conf").write_text(f"%define value_{name} {value}\n")
    (files.directory / f"outer_{name}.conf").write_text(f"%include values_$name_{name}.conf\n")
    files.text += f"%define name_{name} {name}\n%include outer_$name_{name}.conf\n"
    files.include(name, place, f"$value_{name}", "")


def of_a_variable(files: Files, name: str, place: Place, value: str) -> None:
    files.variables[f"QZ_{name.upper()}"] = value.replace("$$", "$")
    files.add(name, place, f"$(QZ_{name.upper()})")


def of_an_option(files: Files, name: str, place: Place, value: str) -> None:
    files.options += ["--define", f"value_{name}={value}"]
    files.text += f"%define value_{name} another\n"
    files.add(name, place, f"$value_{name}")


Way = Callable[[Files, str, Place, str], None]
WAYS: Sequence[Way] = (
    literal, defined, defined_by_others, defined_in_parts, whole_line_defined, included,
    included_by_a_defined_path, included_twice, of_a_variable, of_an_option,
)  # fmt: skip


def leaks(password: str, text: str) -> list[str]:
    """Return the forms of a password that a text holds."""
    forms = {password, password.replace("$", "$$"), in_uri(password), in_dsn(password)}
    forms.add(in_sql(password))
    return [form for form in forms if form in text or json.dumps(form)[1:-1] in text]
