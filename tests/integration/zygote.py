"""A process that has imported the command, and forks one for each list of arguments.

``python -m tests.integration.zygote`` with a socket as standard input: a new interpreter would
import the same modules for a second, hundreds of times in a run of the tests.
"""

from __future__ import annotations

import atexit
import functools
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NoReturn

from tests.integration.stacks import end_with_stacks

MAX_BYTES = 2**16
STREAMS = (("r", -1, "strict"), ("w", -1, "strict"), ("w", 1, "backslashreplace"))
"""Mode, buffering and errors of standard input, output and error: a line on error is not kept."""


class Zygote:
    """The other end of the socket."""

    def __init__(self, python_path: str) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__], stdin=theirs.fileno(),
                cwd=Path(__file__).parents[2], env={**os.environ, "PYTHONPATH": python_path},
            )  # fmt: skip
        atexit.register(self._end)

    def _end(self) -> None:
        self._socket.close()
        self._process.wait()

    def run(
        self,
        words: Sequence[str],
        directory: Path,
        environment: Mapping[str, str],
        stdin: int,
        seconds: float,
    ) -> tuple[int, str, str]:
        """Run the command, and return its exit status and what it has printed.

        :raises subprocess.TimeoutExpired: if it takes longer than *seconds*; what it has printed
            and the stacks of its processes are on standard error, and all of them have ended
        """
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            order = json.dumps([words, str(directory), dict(environment)]).encode()
            pid = 0
            try:
                socket.send_fds(self._socket, [order], [stdin, out.fileno(), err.fileno()])
                pid = int(self._socket.recv(MAX_BYTES))
                status = self._status(words, seconds)
            except BaseException:
                # Its late answer would be taken for that to another order.
                zygote.cache_clear()
                if pid:
                    sys.stderr.write(_printed(out) + _printed(err))
                    end_with_stacks(pid)
                self._end()
                raise
            return status, _printed(out), _printed(err)

    def _status(self, words: Sequence[str], seconds: float) -> int:
        if not select.select([self._socket], [], [], seconds)[0]:
            raise subprocess.TimeoutExpired([*words], seconds)
        return int(self._socket.recv(MAX_BYTES))


@functools.cache
def zygote(python_path: str) -> Zygote:
    """Return the zygote of this process; it ends with it."""
    return Zygote(python_path)


def _printed(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def serve(orders: socket.socket) -> None:
    """Fork a command for each order, and answer with its process id and then its exit status."""
    while True:
        try:
            text, descriptors, _, _ = socket.recv_fds(orders, MAX_BYTES, 3)
        except ConnectionResetError:  # nobody has read the last answer
            return
        if not text:
            return
        pid = os.fork()
        if pid == 0:
            orders.close()
            words, directory, environment = json.loads(text)
            become(words, directory, environment, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        orders.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        with suppress(BrokenPipeError):  # nobody waits any more
            orders.send(str(os.waitstatus_to_exitcode(status)).encode())


def become(
    words: Sequence[str],
    directory: str,
    environment: Mapping[str, str],
    descriptors: Sequence[int],
) -> NoReturn:
    """Be the command, as if a new interpreter ran it in *directory*."""
    from zodbshootout import __main__ as program

    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, buffering, "utf-8", errors, closefd=False)  # noqa: SIM115
        for number, (mode, buffering, errors) in enumerate(STREAMS)
    )
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    tempfile.tempdir = None
    sys.path[0] = directory
    sys.argv = [str(program.__file__), *words]
    status = 1
    try:
        program.run()
        status = 0
    except SystemExit as end:
        status = status_of(end.code)
    except BaseException:  # noqa: BLE001 - as an interpreter does
        traceback.print_exc()
    finally:
        # Taking down all that was imported would take longer than some commands.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def status_of(code: object) -> int:
    """Return the exit status for the argument of ``sys.exit``, and print it if it is a text."""
    if code is None or isinstance(code, int):
        return code or 0
    sys.stderr.write(f"{code}\n")
    return 1


def load() -> None:
    """Import what most commands import, also late."""
    from zodbshootout.cli import compare, report, run, show  # noqa: F401

    gc.freeze()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    load()
    serve(socket.socket(fileno=os.dup(0)))
