"""The table of a cell's parameters, and what follows from it."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from zodbshootout.cli.parser import run_parser
from zodbshootout.model.parameters import (
    CLIENTS,
    PARAMETERS,
    RATE,
    SWEPT,
    metadata_of,
    parameters_of,
    with_values,
    without_objects,
)
from zodbshootout.model.specification import (
    CopiedData,
    CrewShape,
    MappingType,
    Parameters,
    ReplayedWorkload,
)

DEFAULT = Parameters(CrewShape(1))


def test_the_table_has_every_attribute_that_tells_cells_apart() -> None:
    inner = {"crew", "workload", "copied"}
    own = {field.name for field in fields(Parameters)} - {*inner, "owner"}
    of_crew = {f"crew.{field.name}" for field in fields(CrewShape)}
    of_workload = {f"workload.{f.name}" for f in fields(ReplayedWorkload) if f.compare}
    of_copied = {f"copied.{f.name}" for f in fields(CopiedData) if f.compare}
    assert {one.attribute for one in PARAMETERS} == own | of_crew | of_workload | of_copied


def test_names_in_the_table_are_unique_and_its_options_exist() -> None:
    assert len({one.key for one in PARAMETERS}) == len(PARAMETERS)
    assert len({one.letter for one in SWEPT}) == len({one.axis for one in SWEPT}) == len(SWEPT)
    options = {f"--{one.option}" for one in PARAMETERS if one.option}
    assert options <= set(run_parser().option_names)


def test_values_replace_those_of_the_crew_and_of_the_cell() -> None:
    changed = with_values(DEFAULT, {CLIENTS: 3, RATE: 2.5})
    assert changed == replace(DEFAULT, crew=CrewShape(3), rate=2.5)


@pytest.mark.parametrize(("min_objects", "size", "blobs"), [(0, 300, False), (9, 500, True)])
def test_without_objects_only_those_of_min_objects_have_a_size(
    min_objects: int, size: int, blobs: bool
) -> None:
    wanted = replace(
        DEFAULT, object_size=500, blobs=True, mapping=MappingType.OO, seed=3, rate=2.0,
        min_objects=min_objects,
    )  # fmt: skip
    assert without_objects(wanted) == replace(
        DEFAULT, objects=0, object_size=size, blobs=blobs, min_objects=min_objects, seed=3, rate=2.0
    )


def test_a_parameter_that_every_cell_has_may_not_be_missing() -> None:
    metadata = metadata_of(DEFAULT)
    assert parameters_of(metadata) == DEFAULT
    del metadata["seed"]
    with pytest.raises(KeyError, match="seed"):
        parameters_of(metadata)
