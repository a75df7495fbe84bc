"""Where the results of a run go."""

from __future__ import annotations

import datetime
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs

from zodbshootout.cli.options import Options
from zodbshootout.cli.report import format_for
from zodbshootout.errors import UserError
from zodbshootout.results.cell import Cell
from zodbshootout.results.files import ResultFiles
from zodbshootout.results.result import long_name
from zodbshootout.scheduling.plan import Plan


def result_files(options: Options, plan: Plan) -> ResultFiles:
    """Return where results go.

    :raises UserError: when something is there already, or nothing can be written there
    """
    if options.append or options.resume:
        return _files_there(options, plan)
    if options.output:
        files = ResultFiles(options.output)
        for path in files.all:
            if path.exists():
                raise UserError(
                    f"-o: {path} exists; name another file, or use --append to add to it"
                )
        _check_writable(options.output.parent)
        return files
    try:
        directory = Path(platformdirs.user_data_dir("zodbshootout", appauthor=False))
        directory.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: the user has no home directory
        raise UserError(f"results cannot be written: {error}; name a file with -o") from None
    _check_writable(directory)
    now = datetime.datetime.now().astimezone().strftime("%Y-%m-%dT%H.%M.%S")
    return ResultFiles(directory / f"{now}-{options.path.stem}-{os.getpid()}.json")


def _files_there(options: Options, plan: Plan) -> ResultFiles:
    """Return files that are there, and whose results are like those that there will be."""
    option, path = _there(options)
    try:
        files = ResultFiles(path)
        files = files.appending() if options.append else files.resuming()
    except UserError as error:
        raise UserError(f"{option}: {error}") from None
    _check_writable(path.parent)
    # What is known before anything is opened.  There is a second check when all is known.
    told = {each.name: {"configuration_hash": each.fingerprint()} for each in plan.contenders}
    expected = {cell: {**cell.metadata(), **told[cell.contender]} for cell in plan.cells}
    check_like(files, expected, options)
    planned = set(plan.cells)
    other = next((each.cell for each in files.begun if each.cell not in planned), None)
    if other is not None:
        raise UserError(
            f"--resume: {path} is of another run, which had {long_name(other)}; give the same "
            "arguments as then"
        )
    return files


def _there(options: Options) -> tuple[str, Path]:
    """Return the option that names files that are there, and their name."""
    if options.append:
        return "--append", options.append
    assert options.resume is not None
    return "--resume", options.resume


def check_like(
    files: ResultFiles, expected: Mapping[Cell, Mapping[str, Any]], options: Options
) -> None:
    """Check that what will be measured can be added to what the files hold.

    *expected* has what the metadata will say of the runs of each cell.

    :raises UserError: when it is not alike
    """
    conflict = files.conflict(expected, "byte" if options.memory else "second")
    if conflict:
        option, _ = _there(options)
        raise UserError(f"{option}: {conflict}; name another file")


def check_other_files(options: Options) -> None:
    """See to it that what is written beside results can be: profiles, a report.

    :raises UserError: when it cannot
    """
    if options.report is not None:
        format_for("--report", options.report)
        _check_writable(options.report.parent)
    if options.run.profiles is not None:
        _make_directory(options.run.profiles)


def _make_directory(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--profile: {error}") from None
    if not os.access(path, os.W_OK):
        raise UserError(f"--profile: {path} cannot be written to: no permission")


def _check_writable(directory: Path) -> None:
    if not directory.is_dir():
        raise UserError(f"there is no directory {directory} to write results to")
    try:
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise UserError(f"results cannot be written to {directory}: {reason}") from None
