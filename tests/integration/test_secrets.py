"""A run never prints, logs or writes a password, whatever its characters are."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, quote_plus

import psutil
import pytest

from tests.integration.command import QUICK, left_behind, names_in, open_directory, run
from tests.secret_ways import bare_in_dsn

pytestmark = pytest.mark.servers("PostgreSQL", "MariaDB", "MySQLdb")

PRINTABLE = "".join(map(chr, range(0x20, 0x7F)))
FEW = 1
"""The number of passwords tried; the full suite tries ALL of them, a BATCH in each run."""
SPECIAL = 24
"""The number of printable characters in each password, between letters and digits."""
ALL, BATCH = 200, 20


def passwords(count: int) -> list[str]:
    """Return passwords that cover the printable characters, each between letters and digits."""
    chosen = random.Random(11)
    rest: list[str] = []
    generated = []
    for number in range(count):
        if len(rest) < SPECIAL:
            rest += chosen.sample(PRINTABLE, len(PRINTABLE))
        special = "".join(rest.pop() for _ in range(SPECIAL))
        generated.append(f"Pw{number}x{special}y{chosen.randrange(10**6):06d}")
    return generated


def in_dsn(password: str) -> str:
    return "'{}'".format(password.replace("\\", "\\\\").replace("'", "\\'"))


def relstorage(name: str, adapter: str, *settings: str) -> str:
    lines = "\n".join(settings)
    return (
        f"<zodb {name}>\n<relstorage>\n<{adapter}>\n{lines}\n</{adapter}>\n</relstorage>\n</zodb>\n"
    )


def contenders(number: int, password: str) -> str:
    """Return a contender for each setting that can hold a password."""
    place = "host='$pg_host' port='$pg_port' dbname='zodb' user='alice'"
    literal = password.replace("$", "$$")
    quoted, bare = (form(literal) for form in (in_dsn, bare_in_dsn))
    sections = {
        "pg": ("postgresql", "driver psycopg2", f"dsn {place} password={quoted}"),
        "pg8000": ("postgresql", "driver pg8000", f"dsn {place} password={quoted}"),
        "bare": ("postgresql", "driver psycopg2", f"dsn {place} password={bare}"),
        "defined": ("postgresql", "driver psycopg2", f"dsn {place} password=$pw{number}"),
        "outside": ("postgresql", "driver psycopg2", f"dsn {place} password='$(PW_{number})'"),
        "mysql": (
            "mysql", "driver MySQLdb", "db zodb", "user carol", "host $maria_host",
            "port $maria_port", f"passwd {literal}",
        ),
        "pymysql": (
            "mysql", "driver PyMySQL", "db zodb", "user carol", "host $maria_host",
            "port $maria_port", f"passwd {literal}",
        ),
        "oracle": ("oracle", "user scott", f"password {literal}", "dsn nowhere"),
    }  # fmt: skip
    uris = {
        "uri": f"postgresql://alice:{quote(password, safe='')}@$pg/zodb?application_name=zodb",
        "plus": f"postgresql://alice:{quote_plus(password)}@$pg/zodb?application_name=zodb",
        "raw": f"postgresql://alice:{literal}@$pg/zodb?application_name=zodb",
    }
    texts = [relstorage(f"{name}_{number}", *lines) for name, lines in sections.items()]
    texts += [
        relstorage(f"{name}_{number}", "postgresql", "driver psycopg2", f"dsn {uri}")
        for name, uri in uris.items()
    ]
    texts.append(
        f"<zodb zeo_{number}>\n<zeoclient>\nserver $zeo\nusername u\npassword {literal}\n"
        "realm r\n</zeoclient>\n</zodb>\n"
    )
    texts.append(
        f"<zodburi zodburi_{number}>\nuri mysql://carol:{quote(password, safe='')}@$maria/zodb\n"
        "</zodburi>\n"
    )
    texts.append(
        f"<zodb elsewhere_{number}>\nenvironment here\n<relstorage>\n<postgresql>\n"
        f"dsn {place} password={quoted}\n</postgresql>\n</relstorage>\n</zodb>\n"
    )
    return f"%define pw{number} {quoted}\n" + "".join(texts)


def broken_environment(password: str) -> str:
    """Return an environment that cannot be created, and a contender that needs it."""
    url = f"http://alice:{quote(password, safe='')}@127.0.0.1:1/x.whl".replace("$", "$$")
    return (
        f"<environment unmade>\nrequirements x @ {url}\n</environment>\n"
        "<zodb nowhere>\nenvironment unmade\n<mappingstorage/>\n</zodb>\n"
    )


KINDS = ("pg", "mysql", "zeo", "elsewhere")
"""A contender of each server, and one in another Python."""
SERVERS = (
    "%import relstorage\n"
    f"<environment here>\npython {sys.executable}\n</environment>\n"
    "<postgresqlserver pg>\ndatabase zodb\nuser alice\n</postgresqlserver>\n"
    "<mysqlserver maria>\ndatabase zodb\nuser carol\n</mysqlserver>\n"
    "<zeoserver zeo>\n<filestorage>\npath $scratch/zeo.fs\n</filestorage>\n</zeoserver>\n"
    "<zodb let_in>\n<relstorage>\n<postgresql>\ndsn host='$pg_host' port='$pg_port' dbname='zodb'"
    " user='alice' password='$pg_password'\n</postgresql>\n</relstorage>\n</zodb>\n"
)


@contextmanager
def command_lines(place: Path) -> Iterator[set[str]]:
    """Collect the command lines of the processes that run in a directory."""
    seen: set[str] = set()
    finished = threading.Event()

    def watch() -> None:
        while not finished.wait(0.2):
            for process in psutil.process_iter():
                try:
                    if Path(process.cwd()).is_relative_to(place):
                        seen.add(" ".join(process.cmdline()))
                except psutil.Error:
                    continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        finished.set()
        watcher.join()


def passwords_in(text: str, known: list[str]) -> list[str]:
    """Return the passwords that a text contains, literally, quoted or in part."""
    return [
        password
        for password in known
        if any(
            form in text
            for form in (password, quote(password, safe=""), password[:10], password[-10:])
        )
    ]


@pytest.mark.timeout(7200)
def test_a_run_never_prints_logs_or_writes_a_password(full: bool) -> None:
    everything = passwords(ALL if full else FEW)
    assert set(PRINTABLE) <= set("".join(everything)) or not full
    for start in range(0, len(everything), BATCH):
        some = everything[start : start + BATCH]
        with open_directory() as place:
            check_that_no_password_leaks(place, some)


def check_that_no_password_leaks(place: Path, some: list[str]) -> None:
    log = place / "log"
    (place / "log.conf").write_text(
        f"<eventlog>\nlevel debug\n<logfile>\npath {log}\n</logfile>\n</eventlog>\n"
    )
    text = SERVERS + "".join(contenders(number, password) for number, password in enumerate(some))
    text += broken_environment(some[0])
    (place / "x.conf").write_text(text)
    outside = {f"PW_{number}": in_dsn(password)[1:-1] for number, password in enumerate(some)}
    outside |= {"UV_HTTP_RETRIES": "0", "XDG_CACHE_HOME": str(place / "cache")}
    words = ("x.conf", "add", "-c", "1", *QUICK)
    with command_lines(place) as seen:
        done = run(place, *words, "--log", "DEBUG", "-o", "a.json", "--report", "a.html", **outside)
        only = ["let_in", *(f"{name}_{number}" for name in KINDS for number in range(len(some)))]
        logging = (*words, "--only", ",".join(only), "--log", "log.conf")
        again = run(place, *logging, "-o", "b.json", **outside)
    assert done.status == again.status == 3, done.out + done.err
    assert names_in(place / "a.d" / "let_in.json") == {"add"}
    uris = [f"postgres://alice:{password}@127.0.0.1:1/zodb" for password in some]
    uri_runs = [run(place, uri, "add", "--log", "DEBUG", *QUICK) for uri in uris]
    (place / "x.conf").unlink()
    texts = {
        path.relative_to(place).as_posix(): path.read_bytes().decode(errors="replace")
        for path in place.rglob("*")
        if path.is_file()
    }
    assert {"log", "a.json", "a.html", "a.cells.jsonl"} <= texts.keys()
    texts |= {
        f"output of run {number}": command.out + command.err
        for number, command in enumerate([done, again, *uri_runs])
    }
    texts["command lines"] = "\n".join(seen)
    leaks = {name: passwords_in(text, some) for name, text in texts.items()}
    assert {name: leaked for name, leaked in leaks.items() if leaked} == {}
    assert left_behind(place) == []
