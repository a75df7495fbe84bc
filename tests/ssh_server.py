"""An SSH server on this host that runs the commands of clients with a key: ``DIRECTORY``.

The directory has the server's key (``host``) and the keys of clients (``authorized``).  The server
writes its port to ``port`` in it.  It needs no account, and nothing of the system's SSH server.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncssh


async def run_command(process: Any) -> None:
    """Run a command until it ends, or the connection does."""
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_shell(
        process.command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
    )
    try:
        await process.redirect(stdin=child.stdin, stdout=child.stdout, stderr=child.stderr)
        await asyncio.wait(
            [asyncio.create_task(awaitable) for awaitable in (child.wait(), process.wait_closed())],
            return_when=asyncio.FIRST_COMPLETED,
        )
        process.exit(child.returncode or 0)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


async def serve(directory: Path) -> None:
    """Serve on a free port of the loopback interface until this process ends."""
    server = await asyncssh.listen(
        "127.0.0.1", 0, server_host_keys=[str(directory / "host")],
        authorized_client_keys=str(directory / "authorized"), process_factory=run_command,
    )  # fmt: skip
    (directory / "port.new").write_text(str(server.get_port()))
    (directory / "port.new").rename(directory / "port")
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
