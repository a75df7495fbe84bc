"""The entry of the program: select a command, run it, and turn errors into an exit status."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from zodbshootout.cli.arguments import COMMANDS, Parser
from zodbshootout.cli.output import Streams, console_on, project_url
from zodbshootout.errors import (
    BAD_USAGE,
    DEFECT,
    INTERRUPTED,
    SOME_FAILED,
    UserError,
    errors_of_files,
)
from zodbshootout.guardian import GuardianLost
from zodbshootout.model.masking import SECRET_KEY
from zodbshootout.plugins import BrokenPlugin


def main(
    arguments: Sequence[str],
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
    stdin: TextIO | None = None,
) -> int:
    """Run the command and return its exit status."""
    streams = Streams(
        console_on(stdout or sys.stdout), console_on(stderr or sys.stderr), stdin or sys.stdin
    )
    try:
        return _command(arguments, streams)
    except (UserError, BrokenPlugin) as error:
        streams.complain(str(error))
        return error.status if isinstance(error, UserError) else BAD_USAGE
    except GuardianLost as error:
        streams.complain(f"stopped: {error}")
        return SOME_FAILED
    except KeyboardInterrupt:
        streams.complain("interrupted")
        return INTERRUPTED
    except SystemExit as error:  # after --help and --version
        return int(error.code or 0)
    except Exception as error:  # noqa: BLE001 - a defect must not have a verdict's status
        return _report_defect(error, arguments, streams)


def _command(arguments: Sequence[str], streams: Streams) -> int:
    if arguments and arguments[0] == "help":
        arguments = [*arguments[1:], "--help"]
    name, words = command_in(arguments)
    if name not in COMMANDS or any("@" in word or SECRET_KEY.search(word) for word in arguments):
        _hide_secrets(arguments, streams)
    if name in COMMANDS:
        with errors_of_files():
            status = _module_of(name).run(parser_of(name).options(words), streams)
        return streams.status_after(status)
    # Only a run needs ZODB.
    from zodbshootout.cli import parser, run

    with _termination_as_interrupt():
        with errors_of_files():
            options = parser.parse(arguments)
        return run.run(options, streams)


def _hide_secrets(arguments: Sequence[str], streams: Streams) -> None:
    from zodbshootout.config.secrets import of_argument, of_environment  # needs ZConfig

    with errors_of_files():
        streams.mask.hide(of_environment(os.environ))
        for word in arguments:
            streams.mask.hide(of_argument(word))


def _module_of(command: str) -> Any:
    return importlib.import_module(f"zodbshootout.cli.{COMMANDS[command][0]}")


def command_in(arguments: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the name of the command, by default ``run``, and the arguments of the command."""
    for length in (2, 1):  # ``workload make`` before ``workload``
        name = " ".join(arguments[:length])
        if name in COMMANDS and not _is_of_run(arguments):
            return name, arguments[length:]
    return "run", arguments


def _is_of_run(arguments: Sequence[str]) -> bool:
    """Return whether *arguments* begin with ``sample`` but are those of a run."""
    name, following = arguments[0], next(iter(arguments[1:]), "")
    if name != "sample" or following in {"", "-h", "--help"}:
        return False
    from zodbshootout.client.benchmarks import benchmarks  # needs ZODB

    return following.startswith("-") or following in {"all", *benchmarks()}


def parser_of(command: str) -> Parser[Any]:
    """Return the parser for the arguments of a command, which may be ``run``."""
    if command == "run":
        from zodbshootout.cli.parser import run_parser

        return run_parser()
    kind = getattr(_module_of(command), COMMANDS[command][1])
    more = {name: getattr(kind, name, None) for name in ("usage", "epilog")}
    return Parser(kind, prog=f"zodbshootout {command}", description=kind.__doc__, **more)


def _report_defect(error: Exception, arguments: Sequence[str], streams: Streams) -> int:
    if "DEBUG" in {word.rpartition("=")[2].upper() for word in arguments}:
        streams.tell("".join(traceback.format_exception(error)).rstrip())
        advice = "with the lines above"
    else:
        advice = "with the command line, and what --log DEBUG prints"
    place = traceback.extract_tb(error.__traceback__)[-1]
    streams.complain(
        f"unexpected error, which is a defect: {type(error).__name__}: {error} "
        f"({Path(place.filename).name}:{place.lineno}); please report it "
        f"at {project_url('Source')}/issues {advice}"
    )
    return DEFECT


@contextmanager
def _termination_as_interrupt() -> Iterator[None]:
    """Let SIGTERM, and SIGHUP of a closed terminal, end a run as Ctrl-C does.

    Leave a signal alone that is ignored, as SIGHUP is after nohup.
    Only the main thread can set a signal handler; in another thread, change nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {
        number: signal.signal(number, signal.default_int_handler)
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
