"""The files that a run writes to."""

from __future__ import annotations

import datetime
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from zodbshootout.cli.options import Options
from zodbshootout.cli.report import ReportFile
from zodbshootout.cli.values import default_directory
from zodbshootout.errors import UserError
from zodbshootout.model.masking import Mask
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.tables import make_report
from zodbshootout.results.cell import Cell
from zodbshootout.results.files import ResultFiles, damage_of, read_results
from zodbshootout.results.names import file_name, long_name, varied_parameters
from zodbshootout.results.replacement import to_be_replaced
from zodbshootout.scheduling.plan import Plan


@dataclass(frozen=True)
class Destination:
    """The files that a run writes, apart from profiles."""

    files: ResultFiles
    page: ReportFile | None
    """The file of ``--report``."""


def destination(options: Options, plan: Plan, mask: Mask, stack: ExitStack) -> Destination:
    """Return the files that a run writes, without the secrets that *mask* hides.

    Until *stack* is closed, no other run can write results to them.

    :raises UserError: if a file cannot be written, or would replace another file
    """
    _lock(options, stack)
    files, page = replace(result_files(options, plan), mask=mask), None
    if options.report is not None:
        inputs = [*options.paths, files.combined]
        page = ReportFile.checked("--report", options.report, inputs)
        _check_writable(options.report)
    _check_profiles(options.profiles, plan)
    return Destination(files, page)


def _lock(options: Options, stack: ExitStack) -> None:
    """Lock the files of results, before anything is read from them, until *stack* is closed."""
    path = options.append or options.resume or options.output
    if path is None:
        return  # the default name is this process's own
    _check_writable(path)
    try:
        stack.enter_context(ResultFiles(path).locked())
    except UserError as error:
        raise UserError(f"{_option(options)}: {error}") from None


def result_files(options: Options, plan: Plan) -> ResultFiles:
    """Return the files for the results.

    :raises UserError: if the files exist already, or cannot be written
    """
    if options.append or options.resume:
        files = _existing_files(options)
    elif options.output:
        files = _new_files(options.output)
    else:
        files = _default_files(options)
    files.check(contender.title for contender in plan.contenders)
    return files


def _new_files(path: Path) -> ResultFiles:
    files = ResultFiles(path)
    if files.exist:
        raise UserError(
            f"-o: {files.exist} exists; name another file, or use --append to add to it"
        )
    _check_writable(path)
    return files


def _default_files(options: Options) -> ResultFiles:
    try:
        directory = default_directory()
        directory.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: the user has no home directory
        raise UserError(f"results cannot be written: {error}; name a file with -o") from None
    now = datetime.datetime.now().astimezone().strftime("%Y-%m-%dT%H.%M.%S")
    # Cut the stem, so that the file's name has at most 60 characters.
    path = directory / f"{now}-{options.stem[:26]}-{os.getpid()}.json"
    _check_writable(path)
    return ResultFiles(path)


def _existing_files(options: Options) -> ResultFiles:
    option, path = _option(options), options.append or options.resume
    assert path is not None
    try:
        files = ResultFiles(path)
        files = files.appending() if options.append else replace(files, begun=read_results(path))
        with damage_of(path):  # fail now, not when the table is printed after the run
            make_report([ResultSet([*files.existing, *files.begun])])
    except UserError as error:
        raise UserError(f"{option}: {error}") from None
    _check_writable(path)
    return files


def _option(options: Options) -> str:
    if options.output:
        return "-o"
    return "--append" if options.append else "--resume"


def check_like(
    files: ResultFiles,
    plan: Plan,
    expected: Callable[[], Mapping[Cell, Mapping[str, Any]]],
    options: Options,
) -> None:
    """Check that results with the *expected* metadata can be added to the results in the files.

    :raises UserError: if the metadata differ, or the run to resume had other cells
    """
    if not (options.append or options.resume):
        return
    conflict = files.conflict(expected(), "byte" if options.memory else "second")
    if conflict:
        raise UserError(f"{_option(options)}: {conflict}; name another file")
    planned = set(plan.cells)
    other = next((result.cell for result in files.begun if result.cell not in planned), None)
    if other is not None:
        raise UserError(
            f"--resume: {options.resume} is from another run, which has {long_name(other)}; give "
            "the arguments of that run"
        )


def _check_profiles(profiles: Path | None, plan: Plan) -> None:
    """Check that the profiles of all cells can be written."""
    if profiles is not None:
        try:
            profiles.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"--profile: {error}") from None
        if not os.access(profiles, os.W_OK):
            raise UserError(f"--profile: {profiles} is not writable")
        varied = varied_parameters(plan.cells)
        for cell in plan.cells:
            to_be_replaced(profiles / f".{file_name(cell, varied)}.prof")


def _check_writable(path: Path) -> None:
    """Check that files can be created beside *path* and, if it is a link, beside its target."""
    target = to_be_replaced(path)
    if target is not None:
        for directory in dict.fromkeys([path.parent, target.parent]):
            _check_directory(directory)


def _check_directory(directory: Path) -> None:
    if not directory.is_dir():
        raise UserError(f"there is no directory {directory} to write results to")
    try:
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise UserError(f"results cannot be written to {directory}: {reason}") from None
