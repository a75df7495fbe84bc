"""References in docstrings lead to a name."""

from __future__ import annotations

import dis
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
REFERENCE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):`~?([^`]+)`")


def references(path: Path) -> Iterator[tuple[str, ...]]:
    """Yield the dotted names that each reference in a module may stand for."""
    package = ".".join(path.parent.relative_to(SOURCE).parts)
    module = scope = package if path.stem == "__init__" else f"{package}.{path.stem}"
    for line in path.read_text(encoding="utf-8").splitlines():
        if opened := re.match(r"(?:class (\w+)|\w)", line):
            scope = f"{module}.{opened[1]}" if opened[1] else module
        for target in REFERENCE.findall(line):
            if target.startswith("."):
                yield (package + target,)
            else:
                yield f"{scope}.{target}", f"{module}.{target}", target, f"builtins.{target}"


def exists(name: str) -> bool:
    """Return whether a dotted name is that of a module or of a member, also of an instance."""
    owner, _, attribute = name.rpartition(".")
    return value_of(name) is not None or has(value_of(owner), attribute)


def value_of(name: str) -> object:
    try:
        return pkgutil.resolve_name(name)
    except (AttributeError, ImportError, ValueError):
        return None


def has(cls: object, attribute: str) -> bool:
    """Return whether a class declares an attribute of its instances, or its methods set one."""
    bases = inspect.getmro(cls) if inspect.isclass(cls) else ()
    methods = [
        method for base in bases for method in filter(inspect.isfunction, vars(base).values())
    ]
    return any(attribute in inspect.get_annotations(base) for base in bases) or any(
        (instruction.opname, instruction.argval) == ("STORE_ATTR", attribute)
        for method in methods
        for instruction in dis.get_instructions(method)
    )


def test_every_reference_in_a_docstring_leads_to_a_name() -> None:
    written = [names for path in sorted(SOURCE.rglob("*.py")) for names in references(path)]
    assert len(written) > 200
    assert [names[0] for names in written if not any(map(exists, names))] == []
