"""A program that commits to each contender of a file, and marks the time for a system call tracer.

``python -m tests.integration.committing FILE DIRECTORY`` starts the servers of the file, and calls
``kill(PID, 0)``, which does nothing, before and after the commits to each contender.  It prints a
line of JSON for each contender.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack
from pathlib import Path

from zodbshootout.client.database import Database
from zodbshootout.client.preparation import inspect
from zodbshootout.config.configuration import parse
from zodbshootout.config.source import read_source
from zodbshootout.contenders.contender import contenders_of
from zodbshootout.guardian import Guardian
from zodbshootout.model.specification import Storage
from zodbshootout.servers.address import given_names
from zodbshootout.servers.running import RunningServers
from zodbshootout.servers.server import ServerContext

COMMITS = 20


def main(file: Path, directory: Path) -> None:
    source = read_source(file)
    with Guardian() as guardian, ExitStack() as stack:
        names = stack.enter_context(given_names(source, directory))
        configuration = parse(source, names)
        contenders = contenders_of(configuration)
        users = {
            server: [user.name for user in contenders if server.name in user.servers]
            for server in configuration.servers
        }
        context = ServerContext(directory, source, names, guardian)
        servers = RunningServers()
        servers.start(stack, configuration, users, context)
        assert not servers.absent
        for contender in contenders:
            info = contender.opened(inspect(contender.storage)).info
            durability, detail = info.promise
            commit(contender.storage)
            place = info.server_place and info.server_place.value
            sys.stdout.write(f"{json.dumps([contender.name, durability.value, detail, place])}\n")


def commit(storage: Storage) -> None:
    with Database(storage) as database, database.db.transaction() as connection:
        connection.root()["commits"] = 0
    with Database(storage) as database:
        mark()
        for number in range(COMMITS):
            with database.db.transaction() as connection:
                connection.root()["commits"] = number
        mark()


def mark() -> None:
    os.kill(os.getpid(), 0)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
