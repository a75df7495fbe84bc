"""Which databases have to be prepared before a cell is measured, and how."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.data.tree import Dataset
from zodbshootout.client.specification import Parameters
from zodbshootout.client.storage_info import Sharing
from zodbshootout.contenders.contender import Contender
from zodbshootout.results.cell import Cell

ZAPPED_BEFORE = "add"
"""The benchmark before each of whose runs a contender is zapped, if it is to be."""


_Key = tuple[str, Dataset | None, bool, Parameters]


@dataclass(frozen=True)
class Step:
    """What is done to a database before a cell is measured."""

    zap: bool = False
    pack: bool = False
    may_write: bool = False
    """Whether it is done whatever else is in the database."""


@dataclass
class Preparations:
    """What was done, so that it is not done twice."""

    zapped: Collection[str] = ()
    """The names of the contenders whose data is destroyed."""
    pack: bool = False
    """Whether each contender is packed before it is first measured."""
    may_write: Collection[str] = ()
    """The names of the contenders that are written to whatever else is in their databases."""
    _filled: set[_Key] = field(default_factory=set)
    _packed: set[str] = field(default_factory=set)

    def due(self, cell: Cell, contender: Contender) -> Step | None:
        """Return what has to be done before *cell* is measured, if anything has.

        Data that lives in the memory of one process has to be made by the process that measures.
        A contender that is zapped is so before each run of ``add``: where several contenders are
        one and the same database, each of their runs finds it empty.
        """
        if contender.info.sharing is Sharing.VOLATILE:
            return None
        step = Step(
            zap=cell.benchmark == ZAPPED_BEFORE and cell.contender in self.zapped,
            pack=self.pack and cell.contender not in self._packed,
            may_write=cell.contender in self.may_write,
        )
        benchmark = benchmarks()[cell.benchmark]
        nothing_to_write = not (
            benchmark.purpose or cell.parameters.min_objects or benchmark.writes
        )
        done = nothing_to_write or self._key(cell) in self._filled
        return None if done and not (step.zap or step.pack) else step

    def done(self, cell: Cell, step: Step) -> None:
        """Note that a step was taken."""
        if step.zap:
            self._filled.clear()  # other contenders may be the same database
        self._filled.add(self._key(cell))
        if step.pack:
            self._packed.add(cell.contender)

    @staticmethod
    def _key(cell: Cell) -> _Key:
        # What may be read as it is may not be written to for that.
        benchmark = benchmarks()[cell.benchmark]
        return cell.contender, benchmark.purpose, benchmark.writes, cell.parameters
