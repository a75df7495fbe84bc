"""A process that has imported the command, and forks one for each list of arguments.

``python -m tests.integration.zygote`` with a socket as standard input: a new interpreter would
import the same modules for a second, hundreds of times in a run of the tests.  A forked command
forks its guardian, relays, fork servers and ZEO servers for the same reason; see :data:`MODULES`.
"""

from __future__ import annotations

import atexit
import functools
import gc
import inspect
import json
import logging
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
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import CodeType, ModuleType
from typing import IO, Any, NoReturn

from tests.integration.stacks import end_with_stacks
from zodbshootout import guardian
from zodbshootout.network import relays

MAX_BYTES = 2**16
STREAMS = (("r", -1, "strict"), ("w", -1, "strict"), ("w", 1, "backslashreplace"))
"""Mode, buffering and errors of standard input, output and error: a line on error is not kept."""


class Zygote:
    """The other end of the socket."""

    def __init__(self, python_path: str, python: str = sys.executable) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [python, "-m", __name__], stdin=theirs.fileno(),
                cwd=Path(__file__).parents[2], env={**os.environ, "PYTHONPATH": python_path},
            )  # fmt: skip
        atexit.register(self.end)

    def end(self) -> None:
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
                self.end()
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

    with_streams(descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    subprocess.Popen._execute_child = _fork_or_execute  # type: ignore[attr-defined]
    as_if_new([str(program.__file__), *words], directory, environment)
    end_after(program.run)


def with_streams(descriptors: Sequence[int]) -> None:
    """Use these descriptors as standard input, output and error; -1 stands for the present one."""
    for number, descriptor in enumerate(descriptors):
        if descriptor != -1:
            os.dup2(descriptor, number)
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, buffering, "utf-8", errors, closefd=False)  # noqa: SIM115
        for number, (mode, buffering, errors) in enumerate(STREAMS)
    )


def as_if_new(arguments: Sequence[str], directory: str, environment: Mapping[str, str]) -> None:
    """Set what a new interpreter would get."""
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    tempfile.tempdir = None
    sys.path[0] = directory
    sys.argv = [*arguments]


def end_after(main: Callable[[], object]) -> NoReturn:
    """Call *main*, and end the process as an interpreter does."""
    status = 1
    try:
        main()
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


MODULES = {"zodbshootout.workers.fork_server", "ZEO.runzeo"}
"""The modules that are forked instead of being run by a new interpreter."""
SCRIPTS = {guardian.__file__, str(relays.PROGRAM)}
"""The scripts that are forked instead of being run by a new and isolated interpreter."""
_PARAMETERS = inspect.signature(subprocess.Popen._execute_child)  # type: ignore[attr-defined]
_execute = subprocess.Popen._execute_child  # type: ignore[attr-defined]


def _fork_or_execute(self: Any, *values: Any) -> None:
    """Replace a method of Popen's: fork the child if it would run one of our programs."""
    how = _PARAMETERS.bind(self, *values).arguments
    if not (_is_script(how["args"]) or _is_module(how["args"], how["env"])):
        _execute(self, *values)
        return
    is_set_up, setting_up = os.pipe()
    self.pid = os.fork()
    if self.pid == 0:
        end_after(lambda: _be_child(how))
    os.close(setting_up)
    os.read(is_set_up, 1)  # until the child has its session, and has closed the other end
    os.close(is_set_up)
    self._child_created = True
    pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
    self._close_pipe_fds(*(how[name] for name in pipes))


def _is_script(command: Sequence[str]) -> bool:
    return [*command[:-1]] == [sys.executable, "-I", "-S"] and command[-1] in SCRIPTS


def _is_module(command: Sequence[str], environment: Mapping[str, str] | None) -> bool:
    python, option, module, *arguments = [*command, "", ""][: max(3, len(command))]
    return (
        (python, option) == (sys.executable, "-m")
        and module in MODULES
        and "--gevent" not in arguments  # patches Python before anything else is imported
        and _is_for_this_python(environment or os.environ)
    )


def _is_for_this_python(environment: Mapping[str, str]) -> bool:
    """Return whether an interpreter with these variables would be like this one."""
    ours = {name: text for name, text in environment.items() if name.startswith("PYTHON")}
    return "PYTHONPATH" in ours and ours.items() <= os.environ.items()


def _be_child(how: Mapping[str, Any]) -> None:
    """Be a child that was to be executed as Popen describes it."""
    gc.collect()  # later, garbage would close descriptors of the same numbers
    if how["start_new_session"]:
        os.setsid()
    else:
        os.setpgrp()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with_streams([how[name] for name in ("p2cread", "c2pwrite", "errwrite")])
    _close_all_but({0, 1, 2, *map(int, how["pass_fds"])})
    atexit._clear()
    threading._threading_atexits.clear()  # type: ignore[attr-defined]
    for logger in (logging.root, *map(logging.getLogger, logging.root.manager.loggerDict)):
        logger.handlers.clear()
        logger.setLevel(logging.WARNING if logger is logging.root else logging.NOTSET)
    program, *arguments = [word for word in how["args"][1:] if word not in {"-m", "-I", "-S"}]
    name = Path(program).name if program in SCRIPTS else program.rpartition(".")[2]
    Path("/proc/self/comm").write_text(name, encoding="ascii")
    directory = how["cwd"] or os.getcwd()  # noqa: PTH109
    variables = dict(how["env"] or os.environ)
    if program in SCRIPTS:
        gc.freeze()  # a relay would pause whenever it examined the objects of the command
        as_if_new([program, *arguments], directory, variables)
        _run_script(program)
    else:
        gc.unfreeze()
        module = import_module(program)
        as_if_new([str(module.__file__), *arguments], directory, variables)
        sys.exit(module.main())


@functools.cache
def _compiled(script: str) -> CodeType:
    return compile(Path(script).read_text(encoding="utf-8"), script, "exec")


def _run_script(path: str) -> None:
    module = sys.modules["__main__"] = ModuleType("__main__")
    module.__file__ = path
    exec(_compiled(path), vars(module))


def _close_all_but(kept: Collection[int]) -> None:
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        if int(name) not in kept:
            with suppress(OSError):  # that of the list itself
                os.close(int(name))


def status_of(code: object) -> int:
    """Return the exit status for the argument of ``sys.exit``, and print it if it is a text."""
    if code is None or isinstance(code, int):
        return code or 0
    sys.stderr.write(f"{code}\n")
    return 1


def load() -> None:
    """Import what most commands and the processes that they start import, also late."""
    from zodbshootout.cli import compare, report, run, show  # noqa: F401
    from zodbshootout.workers import fork_server

    fork_server._load()
    for module in ("relstorage.storage", "ZEO.runzeo", "ZEO.ClientStorage"):
        import_module(module)
    for script in SCRIPTS:
        _compiled(script)
    gc.freeze()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    load()
    serve(socket.socket(fileno=os.dup(0)))
