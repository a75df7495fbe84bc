"""The published figures, and the commands that measure them today."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_FIVE = "add update warm cold hot"
_N = "--object-counts 1000"
CONFIGURATIONS = "docs/results/conf"
SAMPLES = "src/zodbshootout/config/samples"


@dataclass(frozen=True)
class Published:
    """A published table, in objects per second."""

    where: str
    """The page that contains it."""
    columns: Sequence[str]
    """The contenders, under their current names."""
    rows: Mapping[str, Sequence[int]]
    """The figures of the columns, by benchmark."""
    relative_to: str
    """The contender by whose figures the others are divided, then and now.

    Speeds of two machines cannot be compared, but such ratios can.
    """
    clients: int = 2
    objects: int = 1000
    object_size: int = 128


@dataclass(frozen=True)
class Run:
    """One command."""

    name: str
    """The stem of its file names."""
    title: str
    configuration: str
    words: str
    """The words after the configuration, as typed in a shell."""
    published: Sequence[Published] = ()
    compared: Sequence[tuple[str, str]] = ()
    """Pairs of contenders that the page compares."""
    terminal: bool = False
    """Whether a picture shows the table as on a terminal."""
    costs: bool = False
    """Whether a text shows costs and times at distances, as ``show --costs`` does."""
    seconds: bool = False
    """Whether a text shows the seconds of an iteration, as ``show --unit seconds`` does."""
    traffic: bool = False
    """Whether the page shows round trips and bytes instead of speed."""
    part: str = "by-benchmark"
    """The anchor of the part of the page whose charts are in its picture."""
    distributions: bool = False
    """Whether its picture shows the distributions of latencies, and no other charts."""
    percentile: str = ""
    """The percentile that its charts show, such as ``p99``; empty if they show means."""
    workload: str = ""
    """The path of the workload that it replays, which the page describes; empty for none."""

    @property
    def command(self) -> str:
        """The command that measures it, without the option for its output."""
        return " ".join(["zodbshootout", *self.configuration.split(), self.words])


@dataclass(frozen=True)
class Experiment:
    """Runs that share a page."""

    name: str
    runs: Sequence[Run]


RESULTS_PAGE = Experiment(
    "sample",
    [
        Run(
            "sample",
            "Six benchmarks, two processes",
            "sample",
            f"{_FIVE} steamin -c 2 {_N} -s 128 --at-most 8",
            [
                Published(
                    "zodbshootout's results page",
                    ["postgresql", "mysql", "mysql_mc", "zeo"],
                    {
                        "add": (6529, 10027, 9248, 5212),
                        "update": (6754, 9012, 8064, 4393),
                        "warm": (4969, 6147, 21683, 1960),
                        "cold": (5041, 10554, 5095, 1920),
                        "hot": (38132, 37286, 37826, 37723),
                        "steamin": (4591465, 4366792, 3339414, 4534382),
                    },
                    "zeo",
                )
            ],
        )
    ],
)

_THREE = ["postgresql", "mysql", "zeo"]


def _relstorage_2(where: str, **rows: Sequence[int]) -> list[Published]:
    return [Published(f"RelStorage's performance page, {where}", _THREE, rows, "zeo")]


RELSTORAGE_2 = Experiment(
    "relstorage-2",
    [
        Run(
            "relstorage-2",
            "Two processes",
            f"{CONFIGURATIONS}/relstorage.conf",
            f"{_FIVE} -c 2 {_N} -s 128 --at-most 6",
            _relstorage_2(
                "RelStorage 2.0",
                add=(19534, 23184, 8152),
                update=(17140, 23790, 7122),
                warm=(14232, 16649, 4796),
                cold=(15595, 18070, 4860),
                hot=(86326, 88422, 82600),
            ),
        ),
        Run(
            "relstorage-2-memcached",
            "Two processes, with memcached",
            f"{CONFIGURATIONS}/relstorage-memcached.conf",
            f"{_FIVE} -c 2 {_N} -s 128 --at-most 6",
            _relstorage_2(
                "RelStorage 2.0 with memcached",
                add=(14789, 17378, 8220),
                update=(13834, 17711, 7021),
                warm=(27394, 27978, 4662),
                cold=(7621, 8415, 4344),
                hot=(86165, 83438, 76540),
            ),
        ),
        Run(
            "relstorage-2-threads",
            "Two threads that share a DB",
            f"{CONFIGURATIONS}/relstorage.conf",
            f"{_FIVE} -c 2 --threads shared {_N} -s 128 --at-most 6",
            _relstorage_2(
                "RelStorage 2.0 in shared threads",
                add=(13409, 14081, 4852),
                update=(11541, 14310, 4496),
                warm=(42646, 43699, 123079),
                cold=(10253, 7712, 3497),
                hot=(24973, 26129, 25049),
            ),
        ),
        Run(
            "relstorage-2-pypy",
            "Two threads that share a DB, in PyPy",
            f"{CONFIGURATIONS}/pypy.conf",
            f"{_FIVE} -c 2 --threads shared {_N} -s 128 -w 3 --at-most 6",
            _relstorage_2(
                "RelStorage 2.0 in PyPy",
                add=(15235, 13849, 4681),
                update=(18522, 25939, 4853),
                warm=(15138, 964041, 23843),
                cold=(11974, 9876, 3360),
                hot=(99241, 81685, 25552),
            ),
        ),
    ],
)

_OLD_AND_NEW = [
    (f"{database}_{old}", f"{database}_{new}")
    for old, new in (("20", "21a1"), ("21a1", "now"))
    for database in ("postgresql", "mysql")
]

RELSTORAGE_VERSIONS = Experiment(
    "relstorage-versions",
    [
        Run(
            "relstorage-versions",
            "1000 objects of 128 bytes, two processes",
            f"{CONFIGURATIONS}/relstorage-versions.conf",
            f"add update cold -c 2 {_N} -s 128 --at-most 8",
            compared=_OLD_AND_NEW,
        ),
        Run(
            "relstorage-versions-threads",
            "100 objects of 256 bytes, six threads",
            f"{CONFIGURATIONS}/relstorage-versions.conf",
            "add update cold -c 6 --threads shared --object-counts 100 -s 256 --at-most 8",
            compared=_OLD_AND_NEW,
        ),
    ],
)

RELEASES = Experiment(
    "releases",
    [
        Run(
            "releases-relstorage",
            "RelStorage 4.0 to 4.3",
            "website-sample",
            f"{_FIVE} --only postgresql --against 'RelStorage>=4' -c 1 {_N} --at-most 14",
            part="over-releases",
        ),
        Run(
            "releases-zodb",
            "ZODB 5.8 to 6.4",
            "fs-sample",
            f"{_FIVE} --only fs --against 'ZODB>=5.8; newest of minor' -c 1 {_N} --at-most 8",
            part="over-releases",
        ),
    ],
)

RELSTORAGE_1 = Experiment(
    "relstorage-1",
    [
        Run(
            f"relstorage-1-{objects}",
            f"{objects:,} objects",
            f"{CONFIGURATIONS}/relstorage.conf",
            f"add cold -c {clients} --object-counts {objects} --retries 3 {effort}",
        )
        for objects, clients, effort in (
            (100, "1,2,4,8,16", "--at-most 12"),
            # 8 clients write this many for minutes before measuring begins.
            (10_000, "1,2,4", "-p 3 -n 3"),
        )
    ],
)

_NEWT = (
    # clients, objects, object size, and add, update, cold of RelStorage and of Newt DB
    ("newt", 2, 1000, 96, (13027, 5182), (12140, 5074), (10567, 10283)),
    ("newt", 4, 10, 96, (2411, 1699), (2465, 1819), (9034, 8881)),
    ("newt", 4, 10, 999, (1831, 1298), (1862, 1372), (7548, 7404)),
    ("newt", 8, 10, 999, (1218, 1110), (1146, 1041), (10052, 9795)),
    ("newt", 16, 10, 999, (1555, 1061), (1939, 1071), (9202, 7977)),
    ("newt_text", 4, 10, 96, (1751, 1312), (1780, 1382), (8825, 8704)),
    ("newt_text", 4, 10, 999, (1571, 728), (1613, 640), (7040, 7530)),
    ("newt_text", 8, 10, 999, (1170, 579), (1138, 543), (9702, 9759)),
    ("newt_text", 16, 10, 999, (1184, 450), (1076, 489), (9245, 10236)),
)


def _newt(objects: int) -> list[Published]:
    return [
        Published(
            "Newt DB's page on write performance",
            ["relstorage", contender],
            {"add": add, "update": update, "cold": cold},
            "relstorage",
            clients,
            objects,
            size,
        )
        for contender, clients, count, size, add, update, cold in _NEWT
        if count == objects
    ]


NEWT = Experiment(
    "newt",
    [
        Run(
            "newt-1000",
            "1000 objects, two processes",
            "newt-sample",
            f"add update cold -c 2 {_N} -s 96 --at-most 6",
            _newt(1000),
        ),
        Run(
            "newt-10",
            "10 objects, four to sixteen processes",
            "newt-sample",
            "add update cold -c 4,8,16 --object-counts 10 -s 96,999 --at-most 15",
            _newt(10),
        ),
    ],
)

_REPLAY = "--workload plone -c 1"
_WARM = "warm --object-counts 5000 -c 1 --threads shared"
_ZEO = "--only zeo --define zeo_cache=1MB,3MB,10MB"
_RELSTORAGE = "--only postgresql --define cache_local_mb=1,3,10"
_BUFFERS = "--only postgresql --define shared_buffers=1MB,8MB,128MB"
_PICKLES = "--only zeo,postgresql --define objects_cached=100,300,1000,3000"
_SETTINGS = [
    Run(
        f"settings-{name}",
        title,
        "docs/examples/settings.conf",
        f"{words} --at-most {minutes}",
    )
    for name, title, words, minutes in (
        ("zeo", "ZEO's client cache", f"{_REPLAY} {_ZEO}", 2),
        ("zeo-warm", "ZEO's client cache, warm", f"{_WARM} {_ZEO}", 1),
        ("relstorage", "RelStorage's cache", f"{_REPLAY} {_RELSTORAGE}", 2),
        ("relstorage-warm", "RelStorage's cache, warm", f"{_WARM} {_RELSTORAGE}", 1),
        ("buffers", "PostgreSQL's cache", f"{_REPLAY} {_BUFFERS}", 2),
        (
            "buffers-cold",
            "PostgreSQL's cache, cold",
            f"cold --object-counts 5000 -c 1 {_BUFFERS}",
            1,
        ),
        ("pickles", "The pickle cache", f"update -c 1 {_N} {_PICKLES}", 1.5),
    )
]

EXAMPLES = Experiment(
    "examples",
    [
        Run(
            "website",
            "ZEO, PostgreSQL and MariaDB",
            "website-sample",
            f"-c 4 --threads {_N} --at-most 8",
            compared=[("zeo", "postgresql"), ("zeo", "mysql")],
            terminal=True,
        ),
        *(
            Run(
                f"website-distance{suffix}",
                f"ZEO, PostgreSQL and MariaDB at a distance, {clients}",
                "website-sample",
                f"{words} --rtt 0,0.5ms,2ms --at-most {minutes}",
                costs=True,
                part="at-a-distance",
            )
            for suffix, clients, words, minutes in (
                ("", "one client", f"add update cold prefetch_cold -c 1 {_N}", 10),
                ("-10", "one client, ten objects", "add update cold -c 1 --object-counts 10", 5),
                (
                    "-threads",
                    "four threads",
                    f"add update cold prefetch_cold -c 4 --threads {_N}",
                    20,
                ),
            )
        ),
        Run(
            "upkeep",
            "Packing, opening and copying",
            "website-sample",
            f"pack open copy {_N} --min-objects 100k --garbage 30% --revisions 3 -p 6",
            compared=[("zeo", "postgresql"), ("zeo", "mysql")],
            costs=True,
            seconds=True,
        ),
        Run(
            "upkeep-open",
            "Opening with and without a cache",
            "website-sample",
            "open open_cold open_stale --object-counts 10000 -c 1 --at-most 8",
            costs=True,
            seconds=True,
        ),
        Run(
            "growth",
            "A tree of up to ten million objects",
            "",
            f"add cold open -c 1 {_N} --only filestorage,sqlite --btrees --grown "
            "--min-objects 100k,1M,10M -p 8",
        ),
        Run(
            "tutorial",
            "Two contenders",
            "website-sample",
            f"add cold hot --only zeo,postgresql -c 4 --threads {_N} --at-most 4",
            compared=[("zeo", "postgresql")],
            costs=True,
        ),
        Run(
            "during",
            "A Plone site while its database is packed",
            "website-sample",
            "--workload plone --threads -c 2 --rate 20 --min-objects 100k --garbage 30% "
            "--revisions 3 --during pack -p 3",
            distributions=True,
        ),
        Run(
            "hours",
            "Half an hour of updates",
            f"{CONFIGURATIONS}/hours.conf",
            "update -c 2 --threads --object-counts 10 --rate 20 --for 30min",
            percentile="p50",
        ),
        Run(
            "application",
            "A Plone site, replayed",
            "docs/examples/application.conf",
            "--workload plone -c 1 --at-most 4",
            compared=[("zeo", "postgresql")],
            workload=f"{SAMPLES}/workloads/plone.workload",
        ),
        Run(
            "commits",
            "Steps of transactions",
            "",
            f"new_oid tpc ex_commit im_commit --only filestorage --threads {_N} --at-most 1.5",
        ),
        Run(
            "hosts",
            "Eight clients on two hosts",
            "zeo",
            f"add cold hot --hosts local:2 -c 8 {_N} --at-most 3",
        ),
        Run(
            "rates",
            "Latency at a rate",
            "sample",
            "update -c 8 --object-counts 10 --rate 20..200 --at-most 15",
            percentile="p99",
        ),
        *_SETTINGS,
        *(
            Run(name, title, f"docs/examples/{name}.conf", f"{words} --at-most 1.5")
            for name, title, words in (
                ("zeo", "ZEO", _N),
                ("postgresql", "PostgreSQL", _N),
                ("mysql", "MariaDB", _N),
                ("memcached", "memcached", f"cold conflicts {_N}"),
            )
        ),
    ],
)
"""The first examples in the documentation."""

TRIPS = Experiment(
    "trips",
    [
        Run(
            "trips",
            "Round trips and bytes of an iteration",
            f"{CONFIGURATIONS}/trips.conf",
            "add update store readCurrent tpc new_oid hot cold prefetch_cold warm load "
            "-c 1 --object-counts 1,100 -p 1 -n 1 -l 1 --define python=python3.13",
            traffic=True,
        )
    ],
)
"""One iteration per cell suffices: the counts hardly vary, and do not depend on the machine."""

EXPERIMENTS = (
    EXAMPLES, RESULTS_PAGE, RELEASES, RELSTORAGE_2, RELSTORAGE_VERSIONS, RELSTORAGE_1, NEWT, TRIPS,
)  # fmt: skip
