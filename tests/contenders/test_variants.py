"""Which contenders are measured, in each of their variants."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from zodbshootout.client.masking import Mask
from zodbshootout.config.configuration import Source, parse
from zodbshootout.contenders.environment import Environment
from zodbshootout.contenders.variants import Variant, Variants
from zodbshootout.errors import UserError

CONTENDERS = "".join(f"<zodb {name}>\n<mappingstorage/>\n</zodb>\n" for name in ("a", "b", "c"))


def variants(text: str, *environments: Environment | None) -> Variants:
    source = Source(Path("x.conf"), text)
    context = cast("Any", SimpleNamespace(source=source))
    configuration = parse(source, {})
    return Variants([Variant(context, configuration, each) for each in environments], Mask())


def test_all_contenders_are_measured_unless_some_are_named() -> None:
    found = variants(CONTENDERS, None)
    assert found.selected([]).names == ["a", "b", "c"]
    assert found.selected(["c,a"]).names == ["a", "c"]
    assert found.selected(["c", "b"]).names == ["b", "c"]
    assert [each.name for each in found.selected(["b"]).contenders()] == ["b"]
    with pytest.raises(UserError, match="--only: no contender 'x'; there are a, b, c"):
        found.selected(["x"])


def test_each_variant_has_the_contenders_that_are_named() -> None:
    found = variants(CONTENDERS, Environment("installed"), Environment("old"))
    assert found.selected(["c,a"]).names == ["a", "a@old", "c", "c@old"]


def test_a_configuration_without_contenders() -> None:
    with pytest.raises(UserError, match="no contender; each is a section <zodb NAME>"):
        variants("", None).selected([])
