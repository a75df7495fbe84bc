"""A configuration file before it is interpreted: its text and its tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path

from zodbshootout.config.references import ENVIRONMENT_REFERENCE, references
from zodbshootout.config.sample_files import samples
from zodbshootout.config.secrets import in_named_files
from zodbshootout.config.tree import Section, Tree, read_tree
from zodbshootout.errors import UserError

DATABASE, ZOPE_DATABASE = "zodb", "zodb_db"
"""The section types of databases, in ZODB's and in Zope's configurations."""
EXTERNAL = "externalserver"
"""The section type of a server that runs already."""
MAX_SIZE = 2**20
"""The maximum length of a configuration in characters; larger files are refused."""
_BINARY = re.compile(r"FS\d\d|\0")
"""The beginning of a FileStorage, or of another binary file."""


@dataclass(frozen=True)
class Source:
    """The text of a configuration, and its file."""

    path: Path
    text: str
    definitions: Mapping[str, str] = field(default_factory=dict)
    """Values that replace the file's own definitions, by name."""

    change: Callable[[Tree], Tree] | None = None
    """A function, if any, that changes the file's tree before anything uses the tree."""

    @cached_property
    def original(self) -> Tree:
        """The content of the file, with the files that it includes."""
        return read_tree(self.text, self.path, self.definitions)

    @cached_property
    def tree(self) -> Tree:
        """The content of the file after :attr:`change`."""
        return self.change(self.original) if self.change else self.original

    @property
    def servers(self) -> Sequence[Section]:
        """The server sections that have a name."""
        return [one for one in self.tree.root.sections if one.is_server and one.name]

    @property
    def is_of_zope(self) -> bool:
        """Whether the file is Zope's configuration, or includes a part of one.

        A zope.conf of Zope 3, Grok or BlueBream names its site, and has a ``<zodb>``.
        """
        root = self.tree.root
        is_of_zope_3 = root.key("site-definition") is not None
        return is_of_zope_3 or any(section.type == ZOPE_DATABASE for section in root.sections)

    @property
    def used_names(self) -> frozenset[str]:
        """The names that the text refers to."""
        return frozenset(chain.from_iterable(references(key.written) for key in self.tree.keys))

    @property
    def environment_names(self) -> frozenset[str]:
        """The environment variables that the text refers to."""
        named = (in_named_files(key.value) for key in self.tree.keys)
        values = (key.written for key in chain(self.tree.keys, *named))
        return frozenset(chain.from_iterable(map(ENVIRONMENT_REFERENCE.findall, values)))


def read_source(path: Path) -> Source:
    """Read a configuration file.

    :raises UserError: if the file cannot be read, or is not a configuration but, say, a FileStorage
    """
    try:
        text = _beginning(path)
    except FileNotFoundError:
        advice = (
            f"to measure the installed sample: zodbshootout {path.stem} -c 2"
            if path.stem in samples()
            else "to list the samples that are installed: zodbshootout sample"
        )
        raise UserError(f"no such file: {path}; {advice}") from None
    except UnicodeError:
        # Do not quote the path: zodburi does not unquote it.
        uri = f"file://{path.absolute()}"
        raise UserError(
            f"cannot read {path}: it is not UTF-8 text; if it is a FileStorage, write {uri}"
        ) from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    if len(text) > MAX_SIZE:
        raise UserError(
            f"cannot read {path}: it is larger than 1 MB, too large for a configuration"
        )
    if "\0" in text:
        number = text.count("\n", 0, text.index("\0")) + 1
        raise UserError(f"{path}:{number}: the NUL character is not allowed; delete it")
    return Source(path, text)


def _beginning(path: Path) -> str:
    """Return the beginning of a file's text, at most one character longer than :data:`MAX_SIZE`."""
    with path.open(encoding="utf-8-sig") as file:
        text = file.read(MAX_SIZE + 1)
    if _BINARY.match(text):
        raise UnicodeError
    return text
