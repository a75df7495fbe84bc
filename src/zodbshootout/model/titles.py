"""The titles of contenders and of their variants, which nothing ever parses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Union

from zodbshootout.model.specification import duration

RTT = "rtt"
"""The axis of ``--rtt``."""
RELEASE, ENVIRONMENT = "release", "environment"
"""The axes of ``--against``; a variant is on one of them.  All other axes of variants are names to
which ``--define`` gives several values."""
OF_PACKAGES = frozenset({RELEASE, ENVIRONMENT})


@dataclass(frozen=True)
class Release:
    """A release or a commit of a package."""

    package: str
    version: str = ""
    commit: str = ""
    """The tag or the abbreviated hash of a commit; empty for a release."""

    def lower(self) -> Release:
        """Return the release in lower case, in which ZConfig has names."""
        return Release(*map(str.lower, (self.package, self.version, self.commit)))

    def __str__(self) -> str:
        return f"{self.package}@{self.commit}" if self.commit else f"{self.package}=={self.version}"


Value = Union[str, Release]
"""A value on an axis: a :class:`Release` on the axis :data:`RELEASE`, else a text."""


def title_of(contender: str, variant: Mapping[str, Value], rtt: float | None = None) -> str:
    """Return a variant's title: ``pg@relstorage==4.0.0``, or ``zeo [cache=10MB, 0.5ms]``."""
    others = {axis: value for axis, value in variant.items() if axis not in OF_PACKAGES}
    values = [f"{axis}={value}" for axis, value in others.items()]
    if rtt is not None:
        values.append(duration(rtt))
    named = "@".join([contender, *filter(None, [environment_of(variant)])])
    return f"{named} [{', '.join(values)}]" if values else named


def environment_of(variant: Mapping[str, Value]) -> str:
    """Return the name of the environment of ``--against``; empty for the base environment."""
    return str(variant.get(RELEASE) or variant.get(ENVIRONMENT, ""))


def plain(variant: Mapping[str, Value]) -> dict[str, Any]:
    """Return a variant in the form for JSON; see :func:`variant_of`."""
    return {
        axis: {name: text for name, text in asdict(value).items() if text}
        if isinstance(value, Release)
        else value
        for axis, value in variant.items()
    }


def variant_of(written: Mapping[str, Any]) -> dict[str, Value]:
    """Return the variant that :func:`plain` turned into *written*."""
    return {
        axis: Release(**value) if isinstance(value, Mapping) else str(value)
        for axis, value in written.items()
    }
