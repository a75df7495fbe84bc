from __future__ import annotations

import subprocess
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
import shtab

from zodbshootout.cli import values
from zodbshootout.cli.parser import completion_parser, parse, run_parser
from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.config.configuration import EMBEDDED
from zodbshootout.config.sample_files import samples, workloads
from zodbshootout.errors import UserError
from zodbshootout.model.parameters import CLIENTS, MIN_OBJECTS, OBJECTS, RATE, SIZE
from zodbshootout.model.specification import (
    ClientKind,
    CrewShape,
    LatencyLimit,
    MappingType,
    Parameters,
)
from zodbshootout.scheduling.calibration import RUN_TIME, Effort
from zodbshootout.scheduling.plan import Sweep

SEVEN = ["add", "update", "warm", "cold", "prefetch_cold", "hot", "steamin"]


def kind(sweep: Sweep) -> tuple[ClientKind, bool]:
    return sweep.base.crew.client_kind, sweep.base.crew.shared


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.conf").write_text("<zodb a>\n<mappingstorage>\n</mappingstorage>\n</zodb>\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a.prof").touch()
    (tmp_path / "log.conf").write_text("<eventlog>\nlevel info\n</eventlog>\n")


def test_without_arguments_one_process_measures_the_embedded_default() -> None:
    options = parse([])
    assert options.files == [EMBEDDED]
    assert options.benchmarks == SEVEN
    assert options.sweep.values[CLIENTS] == [1]
    assert kind(options.sweep) == (ClientKind.PROCESS, False)


def test_the_name_of_a_sample_suffices_unless_a_file_has_it(tmp_path: Path) -> None:
    options = parse(["x.conf", "website-sample", "add"])
    files = [path for path in options.files if isinstance(path, Path)]
    assert [path.name for path in files] == ["x.conf", "website-sample.conf"]
    assert options.benchmarks == ["add"]
    assert options.files[1] == samples()["website-sample"]
    Path("website-sample").write_text("")
    assert parse(["website-sample"]).files == [Path("website-sample")]


def test_the_name_of_a_workload_suffices_unless_a_file_has_it(tmp_path: Path) -> None:
    workload = parse(["--workload", "plone"]).workload
    assert workload is not None
    assert workload.path == workloads()["plone"]
    Path("plone").write_text("another")
    with pytest.raises(UserError, match="plone: this is not a recorded workload"):
        parse(["--workload", "plone"])


@pytest.mark.parametrize("words", [["x.conf"], ["-c", "2"], ["-c2"], ["x.conf", "add"]])
def test_clients_are_two_processes_if_a_file_or_a_number_is_given(words: list[str]) -> None:
    sweep = parse(words).sweep
    assert (*kind(sweep), sweep.values[CLIENTS]) == (ClientKind.PROCESS, False, [2])


def test_rates_may_be_lists_and_doubling_ranges() -> None:
    options = parse(["x.conf", "add", "--rate", "20..200,5", "--rate", "0.5"])
    assert options.sweep.values[RATE] == [20, 40, 80, 160, 200, 5, 0.5]
    assert parse(["add"]).sweep.values[RATE] == [0]


def test_a_latency_limit_is_a_percentile_and_a_time() -> None:
    words = ("p99=50ms", "p99.9=2s")
    limits = [parse(["add", "--latency-limit", word]).sweep.base.limit for word in words]
    assert limits == [LatencyLimit(99, 0.05), LatencyLimit(99.9, 2)]


def test_a_comma_in_a_value_of_define_follows_a_backslash() -> None:
    options = parse(["x.conf", "--define", r"libs=a\,b, c\,d\,e ,f", "--define", r"x='a\,b'"])
    assert options.definitions == {"libs": ["a,b", "c,d,e", "f"], "x": ["'a,b'"]}
    (path,) = parse(["--define", r"path=C:\x\y"]).definitions.values()
    assert path == [r"C:\x\y"]


def test_define_gives_a_name_one_or_more_values() -> None:
    options = parse(["x.conf", "--define", "Cache=1MB,10MB", "--define", "objects=5"])
    assert options.definitions == {"cache": ["1MB", "10MB"], "objects": ["5"]}


@pytest.mark.parametrize("words", [["--threads"], ["--gevent"], ["--threads", "x.conf"]])
def test_threads_and_greenlets_are_two_by_default(words: list[str]) -> None:
    assert parse(words).sweep.values[CLIENTS] == [2]


def test_defaults_are_those_of_the_manual() -> None:
    options = parse(["x.conf"])
    assert options.effort == Effort(
        processes=8, values=0, warmups=0, loops=0, min_time=0.01, run_time=0.8,
        precision=0.05, cell_limit=8.0,
    )  # fmt: skip
    assert options.timeout == 1800
    assert options.sweep.values[OBJECTS] == [100]
    assert options.sweep.values[SIZE] == [300]
    assert options.sweep.base.mapping is MappingType.PERSISTENT_MAPPING


@pytest.mark.parametrize(
    ("words", "unit", "shared"),
    [
        (["--threads"], ClientKind.THREAD, True),
        (["--threads", "shared"], ClientKind.THREAD, True),
        (["--threads", "unique"], ClientKind.THREAD, False),
        (["--threads=unique"], ClientKind.THREAD, False),
        (["--gevent"], ClientKind.GREENLET, True),
        (["--gevent", "--threads", "unique"], ClientKind.GREENLET, False),
    ],
)
def test_options_choose_the_kind_of_clients(
    words: list[str], unit: ClientKind, shared: bool
) -> None:
    sweep = parse(words).sweep
    assert kind(sweep) == (unit, shared)


@pytest.mark.parametrize(
    "words",
    [
        ["--threads", "x.conf", "cold"],
        ["--btrees", "x.conf", "cold"],
        ["--log", "x.conf", "cold"],
        ["--include-mapping", "x.conf", "cold"],
        ["x.conf", "--threads", "cold"],
        ["x.conf", "cold", "--threads"],
        ["--threads", "--btrees", "--log", "x.conf", "cold"],
    ],
)
def test_trap_12_options_with_optional_values_swallow_no_other_word(words: list[str]) -> None:
    options = parse(words)
    assert options.files == [Path("x.conf")]
    assert options.benchmarks == ["cold"]


def test_log_takes_a_level_or_a_file_that_configures_logging() -> None:
    assert parse(["--log", "debug", "x.conf"]).log == "DEBUG"
    assert parse(["--log", "x.conf"]).log == "INFO"
    options = parse(["--log", "log.conf", "x.conf"])
    assert options.log == str(Path("log.conf").absolute())
    assert options.files == [Path("x.conf")]
    assert parse(["--log=log.conf"]).files == [EMBEDDED]


def test_a_uri_can_replace_the_file() -> None:
    options = parse(["zeo://localhost:8100", "cold", "-c", "4"])
    assert (options.files, options.stem) == (["zeo://localhost:8100"], "zeo")
    assert options.benchmarks == ["cold"]
    assert (*kind(options.sweep), options.sweep.values[CLIENTS]) == (ClientKind.PROCESS, False, [4])
    assert parse(["-c1", "demo:(memory://)/(memory://)"]).files == ["demo:(memory://)/(memory://)"]
    assert parse(["x.conf"]).files == [Path("x.conf")]
    assert parse([]).files == [EMBEDDED]


def test_several_files_and_uris_come_before_the_benchmarks() -> None:
    options = parse(["x.conf", "memory://", "log.conf", "cold"])
    assert options.files == [Path("x.conf"), "memory://", Path("log.conf")]
    assert (options.paths, options.stem) == ([Path("x.conf"), Path("log.conf")], "x")
    assert options.benchmarks == ["cold"]


def test_a_uri_alone_is_measured_in_one_process() -> None:
    for words, size in ((["file:///tmp/x.fs"], 1), (["file:///tmp/x.fs", "-c2"], 2)):
        sweep = parse(words).sweep
        assert (*kind(sweep), sweep.values[CLIENTS]) == (ClientKind.PROCESS, False, [size])


def test_an_existing_file_whose_name_looks_like_a_uri_is_a_file() -> None:
    Path("zeo:x").touch()
    assert parse(["zeo:x"]).files == [Path("zeo:x")]


@pytest.mark.parametrize("name", SEVEN)
def test_trap_12_a_benchmark_can_be_left_out(name: str) -> None:
    assert parse(["x.conf", f"-{name}"]).benchmarks == [
        benchmark for benchmark in SEVEN if benchmark != name
    ]


def test_benchmarks_run_once_and_in_a_fixed_order() -> None:
    assert parse(["x.conf", "hot", "add", "hot"]).benchmarks == ["add", "hot"]
    # One needs a workload, the others a database to themselves.
    every = [name for name in benchmarks() if name not in {"replay", "open_stale", "pack", "copy"}]
    assert parse(["x.conf", "all"]).benchmarks == every
    assert parse(["x.conf", "all", "-cold"]).benchmarks == [n for n in every if n != "cold"]
    assert parse(["x.conf", "tpc"]).benchmarks == ["tpc"]
    assert parse(["cold"]).files == [EMBEDDED]


def test_a_sweep_is_given_by_commas_or_by_repeated_options() -> None:
    sweep = parse(
        ["-c", "1,2", "-c", "4", "--object-counts", "10,100", "-s", "128", "-s", "300"]
    ).sweep
    assert sweep.values[CLIENTS] == [1, 2, 4]
    assert sweep.values[OBJECTS] == [10, 100]
    assert sweep.values[SIZE] == [128, 300]
    assert len(sweep.parameters()) == 12


def test_options_shape_the_data() -> None:
    base = parse(
        ["--btrees", "OO", "--btree-leaf-size", "7", "--btree-internal-size", "9", "--blobs",
         "--compressibility", "0.25", "--seed", "3", "--revisions", "5", "--garbage", "20%"]
    ).sweep.base  # fmt: skip
    assert base == Parameters(
        CrewShape(1),
        mapping=MappingType.OO,
        leaf_size=7,
        internal_size=9,
        blobs=True,
        compressibility=0.25,
        revisions=5,
        garbage=0.2,
        seed=3,
    )


def test_zap_asks_unless_it_has_a_value() -> None:
    assert parse(["x.conf"]).zap is None
    assert parse(["x.conf", "--zap"]).zap == "ask"
    assert parse(["--zap", "x.conf", "add"]).zap == "ask"
    assert parse(["--zap", "add", "cold"]).zap == "ask"
    assert parse(["--zap", "zeo://localhost:8100"]).zap == "ask"
    assert parse(["x.conf", "--zap", "force"]).zap == "force"
    assert parse(["x.conf", "--zap", "a,B"]).zap == "a,B"


def test_pack_leaks_profile_and_fail_fast_apply_to_the_run() -> None:
    run = parse(["x.conf", "--threads", "--pack", "--leaks", "--profile", "d", "--fail-fast"])
    assert (run.pack, run.leaks, run.fail_fast) == (True, True, True)
    assert run.profiles == Path("d").absolute()


def test_btrees_are_io_unless_another_kind_is_given() -> None:
    assert parse(["--btrees"]).sweep.base.mapping is MappingType.IO
    assert parse(["--btrees", "OO"]).sweep.base.mapping is MappingType.OO


def test_fast_rigorous_and_single_value_change_the_effort() -> None:
    effort = parse([]).effort
    assert parse(["--fast"]).effort == replace(effort, cell_limit=8.0 / 3)
    assert parse(["--rigorous"]).effort == replace(effort, precision=0.02, cell_limit=32.0)
    fixed = parse(["-p", "5"]).effort
    assert parse(["-p", "5", "--fast"]).effort == replace(fixed, run_time=RUN_TIME / 3)
    assert parse(["-p", "5", "--rigorous"]).effort == replace(fixed, processes=6)
    single = parse(["--debug-single-value"]).effort
    assert (single.processes, single.values, single.warmups, single.loops) == (1, 1, 0, 1)


def test_a_sweep_may_include_ranges() -> None:
    sweep = parse(["-c", "1..4", "-c", "8", "--object-counts", "9..11", "-s", "300..302,128"]).sweep
    assert sweep.values[CLIENTS] == [1, 2, 3, 4, 8]
    assert sweep.values[OBJECTS] == [9, 10, 11]
    assert sweep.values[SIZE] == [300, 301, 302, 128]


def test_durations_may_have_units() -> None:
    assert [parse(["--at-most", text]).effort.limit for text in ("2", "30s", "2m", "1h")] == [
        120, 30, 120, 3600,
    ]  # fmt: skip
    assert [parse(["--timeout", text]).timeout for text in ("90", "90s", "2m")] == [90, 90, 120]


def test_numbers_and_sizes_have_units() -> None:
    words = ["--object-counts", "500,10k,1.5M", "--min-objects", "0,2m", "-c", "1", "-p", "3"]
    sizes = "300,200B,1k,2KB,3KiB,1M,1.5MB,1GiB"
    options = parse([*words, "-s", sizes])
    assert options.sweep.values[OBJECTS] == [500, 10_000, 1_500_000]
    assert options.sweep.values[MIN_OBJECTS] == [0, 2_000_000]
    kibi = 1024
    assert options.sweep.values[SIZE] == [
        300, 200, kibi, 2 * kibi, 3 * kibi, kibi**2, 3 * kibi**2 // 2, kibi**3
    ]  # fmt: skip


@pytest.mark.parametrize(
    "number", ["k", "1kB", "1KiB", "1.5", "0.1k1", "0.0001k", "-1k", "", "1e3"]
)
def test_other_units_are_refused(number: str) -> None:
    with pytest.raises(UserError, match="is not a positive number, such as 1000, 10k or 1M"):
        parse([f"--object-counts={number}"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rate", "50,400,50"], "--rate: 50 is given twice, but would be one row of the table"),
        (["--rate", "50", "--rate", "20,50"], "--rate: 50 is given twice"),
        (["-c", "2,2"], "--concurrency: 2 is given twice"),
        (["-c", "1..4,4"], "--concurrency: 4 is given twice"),
        (["--object-counts", "10,10"], "--object-counts: 10 is given twice"),
        (["--object-counts", "1000k,1M"], "--object-counts: 1000000 is given twice"),
        (["-s", "1k,300,1024"], "--object-size: 1024 is given twice"),
        (["--rtt", "0,0"], "--rtt: 0 is given twice"),
    ],
)
def test_equal_values_of_an_option_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(UserError) as caught:
        parse(["add", *words])
    assert str(caught.value).startswith(message)
    assert str(caught.value).endswith("; give it once")


def test_benchmarks_may_be_separated_by_commas() -> None:
    assert parse(["cold,add"]).benchmarks == ["add", "cold"]
    assert parse(["x.conf", "hot,add", "cold"]).benchmarks == ["add", "cold", "hot"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-c", "4..1"], "argument -c/--concurrency: 4..1: there is no number from 4 to 1"),
        (["-c", "0..3"], "argument -c/--concurrency: '0' is not a positive number"),
        (["-c", "1..x"], "argument -c/--concurrency: 'x' is not a positive number"),
        (["-c", "1..2..3"], "argument -c/--concurrency: "),
        (["x.conf", "clod"], "unknown benchmark 'clod'; did you mean load or cold?"),
        (["x.conf", "-clod"], "unknown benchmark 'clod' in '-clod'; did you mean -load or -cold?"),
        (["cold", "website-sample"], "website-sample: put it before the benchmarks"),
        (
            ["website-sampel"],
            "no such file or command: 'website-sampel'; did you mean",
        ),
        (["cold", "zeo://u:geheim@h"], "zeo://u:geheim@h: put it before the benchmarks"),
        (["x.conf", "cold", "log.conf"], "log.conf: put it before the benchmarks"),
        (["x.conf", "./x.conf"], "a FILE is given twice; give it once"),
        (["clod"], "no such file or benchmark: 'clod'; did you mean load or cold?"),
        (["-c", "0"], "argument -c/--concurrency: '0' is not a positive number"),
        (["-c", "two"], "argument -c/--concurrency: 'two' is not a positive number"),
        (["--object-counts", "-5"], "argument --object-counts: '-5' is not a positive number"),
        (["-s", "0"], "argument -s/--object-size: '0' is not a size in bytes, such as 300, 1k"),
        (["-s", "20"], "argument -s/--object-size: a stored object takes at least"),
        (["--nonsense"], "unknown option --nonsense; did you mean"),
        (["--log=nowhere.conf"], "--log: 'nowhere.conf' is neither a level"),
        (["--python", "no-such-python"], "--python: there is no program 'no-such-python'"),
        (["--data", "x.fs", "add"], "--data needs --workload, or the benchmark copy"),
        (["--zap", "-add"], "--zap destroys data right before add, which is not among"),
        (["--zap=force", "cold"], "--zap destroys data right before add, which is not among"),
        (["-o", "."], "-o/--output: . is a directory; name a file, such as a.json"),
        (["-o", "/"], "-o/--output: / is a directory; name a file, such as /a.json"),
        (["--append", "."], "--append: . is a directory; name a file"),
        (["--min-time", "nan"], "--min-time: 'nan' is not a duration, such as 90, 90s or 2m"),
        (["--min-time", "-3"], "--min-time: '-3' is not a duration, such as 90, 90s or 2m"),
        (["--affinity", "a"], "--affinity: 'a' is not a list of CPUs, such as 0-3,6"),
        (["--affinity", "0,99999"], "--affinity: there is no CPU 99999; the last one is"),
        (["--affinity", "0-99999999999"], "--affinity: there is no CPU 99999999999; the last one"),
        (["--affinity", "1-0"], "--affinity: '1-0' is not a list of CPUs"),
        (["--compressibility", "1.5"], "'1.5' is not a number from 0 to 1"),
        (["--min-objects", "none"], "'none' is not 0 or a positive number"),
        (["--min-objects", "10k,-1"], "'-1' is not 0 or a positive number"),
        (["--min-objects", "0,1k,1000"], "--min-objects: 1000 is given twice, but"),
        (["--btrees", "--btree-leaf-size", "1"], "a node of a BTree holds at least 2"),
        (["--hosts", "local:2", "--log", "log.conf"], "--log"),
        (["--profile", "full"], "--profile: full is not empty; name another directory"),
        (["--profile", "x.conf"], "--profile: x.conf is not a directory"),
        (["--collector", "mean"], "unknown option --collector"),
        (["--compare-to", "python3"], "--compare-to is not available"),
        (["--worker"], "--worker is not available"),
        (["-add", "add"], "no benchmark is left to measure"),
        (["all", "-nimble"], "unknown benchmark 'nimble' in '-nimble'; there are add, update"),
        (["--benchmarks", "add"], "unknown option --benchmarks; name benchmarks without it"),
        (["run", "x.conf"], "there is no command 'run'; type: zodbshootout x.conf"),
        (["last"], "last stands for results; to print them: zodbshootout show last"),
        (
            ["-q", "show", "a b.json"],
            "show is a command; put it first: zodbshootout show 'a b.json'",
        ),
        (["-c1", "help", "show"], "help is a command; put it first: zodbshootout help show"),
        (["shwo", "a.json"], "no such file or command: 'shwo'; did you mean show?"),
        (["add,clod"], "unknown benchmark 'clod'; did you mean load or cold?"),
        (["--at-most", "2x"], "--at-most: '2x' is not a duration, such as 5, 30s or 2m"),
        (["--rate", "0"], "--rate: '0' is not a number of iterations a second"),
        (["--rate", "-1"], "--rate"),
        (["--rate", "nan"], "--rate: 'nan' is not a number of iterations a second"),
        (["--rate", "9..3"], "--rate: 9..3: 3 is less than 9"),
        (["--rate", "20", "pack"], "pack has no rate: each iteration needs a preparation"),
        (["--latency-limit", "p99=1s", "copy"], "copy has no rate: each iteration needs"),
        (["--latency-limit", "50ms"], "'50ms' is not a percentile and a time"),
        (["--latency-limit", "p99=50"], "'p99=50' is not a percentile and a time"),
        (["--latency-limit", "p100=50ms"], "'p100=50ms' is not a percentile and a time"),
        (["--latency-limit", "p0=50ms"], "'p0=50ms' is not a percentile and a time"),
        (["--latency-limit", "p99=0ms"], "'p99=0ms' is not a percentile and a time"),
        (["--define", "cache"], "--define: write NAME=VALUE"),
        (["--define", "=1"], "--define: write NAME=VALUE"),
        (["--define", "a b=1"], "write NAME=VALUE"),
        (["--define", "cache="], "'' is not a value"),
        (["--define", "cache=1,,2"], "'' is not a value"),
        (["--define", "libs='a,b'"], r"libs: quotes do not protect a comma in a value; write"),
        (["--define", 'libs="a,b"'], r"write the comma as \,"),
        (["--define", "cache=1,2,1"], "cache has the same value twice"),
        (["--define", "cache=1</zodb>"], "'1</zodb>' is not a value"),
        (["--define", "cache=1\n</zodb>"], "is not a value: it has to be one line of text"),
        (["--define", "cache=1", "--define", "cache=2"], "--define: cache is given twice"),
        (["--define", "cache=1,2", "--against", "ZODB"], "--define has several values; with"),
        (["--threads", "4"], "--threads: -c sets the number of clients; give -c 4 --threads"),
        (["--threads=4", "add"], "--threads: -c sets the number of clients; give -c 4 --threads"),
        (["--btrees=LO"], "argument --btrees: invalid choice: 'LO' (choose from"),
        (["--log=TRACE"], "--log: 'TRACE' is neither a level (DEBUG, INFO,"),
        (["add", "x.conf"], "x.conf: put it before the benchmarks"),
        (["add", "nowhere.conf"], "no such file: nowhere.conf"),
        (["x.conf", "COLD"], "unknown benchmark 'COLD'; did you mean cold?"),
        (["COLD"], "no such file or benchmark: 'COLD'; did you mean cold?"),
        (["--object-count", "3"], "unknown option --object-count; did you mean --object-counts"),
        (["--qqq"], "unknown option --qqq; see zodbshootout --help"),
        (["-p", "0"], "argument -p/--processes: '0' is not a positive number"),
        (["-w", "-1"], "argument -w/--warmups: '-1' is not 0 or a positive number"),
        (
            ["--timeout", "nan"],
            "--timeout: 'nan' is not a duration, such as 90, 90s or 2m",
        ),
        (["--seed", "x"], "argument --seed: 'x' is not a whole number"),
        (
            ["-c", "999999"],
            "argument -c/--concurrency: 999999 clients are too many; the max",
        ),
    ],
)
def test_bad_usage_is_reported_in_one_line(words: list[str], message: str) -> None:
    with pytest.raises(UserError) as caught:
        parse(words)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_logging_file_that_is_not_text_is_refused() -> None:
    Path("log.conf").write_bytes(b"\xff<eventlog>\n</eventlog>\n")
    with pytest.raises(UserError, match=r"--log: .*log\.conf: 'utf-8' codec can't decode byte"):
        parse(["--log=log.conf"])


def test_an_error_in_a_logging_file_is_reported_with_its_line() -> None:
    Path("log.conf").write_text("<logger>\nnonsense 1\n</logger>\n")
    with pytest.raises(UserError, match=r"log\.conf:2: 'nonsense' is not a known key"):
        parse(["--log", "log.conf", "x.conf"])


@pytest.mark.parametrize(("option", "package"), [("gevent", "gevent"), ("leaks", "objgraph")])
def test_an_option_whose_package_is_not_installed_is_refused_with_advice(
    option: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=rf"^--{option}: {package} .* 'zodbshootout\[{option}\]'$"):
        parse([f"--{option}"])


def test_a_python_without_zodbshootout_is_refused_before_measuring(tmp_path: Path) -> None:
    python = tmp_path / "python"
    for status in (0, 1):  # any other program may succeed
        python.write_text(f"#!/bin/sh\nexit {status}\n")
        python.chmod(0o755)
        with pytest.raises(UserError, match="zodbshootout is not installed for"):
            parse(["--python", "./python"])


def test_a_python_that_never_ends_is_refused_and_its_output_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\ntest -p /dev/stdout && exit 42\nexec sleep 9\n")
    python.chmod(0o755)
    monkeypatch.setattr(values, "PYTHON_TIMEOUT", 0.5)
    with pytest.raises(UserError, match=r"python did not answer for 0\.5 s; it does not seem"):
        parse(["--python", "./python"])


def test_memory_can_be_traced_in_threads() -> None:
    assert parse(["--tracemalloc", "--threads"]).memory == "--tracemalloc"
    assert parse(["--track-memory", "--threads"]).memory == "--track-memory"


@pytest.mark.parametrize("option", ["--tracemalloc", "--track-memory"])
def test_a_memory_value_is_one_iteration_unless_loops_are_given(
    option: str,
) -> None:
    assert parse([option, "--threads"]).effort.loops == 1
    assert parse([option, "--threads", "-l", "5"]).effort.loops == 5


def test_a_given_number_of_runs_or_values_fixes_the_effort() -> None:
    assert parse(["-p", "5"]).effort == Effort(5, 0, 0, 0, 0.01, run_time=RUN_TIME)
    assert parse(["-n", "7"]).effort == Effort(3, 7, 0, 0, 0.01, run_time=RUN_TIME)


def test_precision_and_at_most_are_accepted_unless_the_effort_is_fixed() -> None:
    effort = parse(["--precision", "2%", "--at-most", "10", "-n", "7"]).effort
    assert (effort.precision, effort.limit, effort.values) == (0.02, 600.0, 7)
    assert parse(["--at-most", "0.5"]).effort.limit == 30.0
    with pytest.raises(UserError, match="--at-most cannot be combined with -p"):
        parse(["-n", "3", "--at-most", "2"])
    for words in (["--precision", "0"], ["--precision", "x"], ["--at-most", "-1"]):
        with pytest.raises(UserError, match="is not a"):
            parse(words)


def test_the_help_describes_values_and_shell_completion() -> None:
    text = " ".join(run_parser().format_help().split())
    for words in (
        "bytes of a stored record, such as 300, 1k or 1MB (default: 300)",
        "stop measuring after MINUTES (or a time such as 30s or 1h),",
        "pip install 'zodbshootout[completion]'",
        "shtab -s bash --prog zodbshootout zodbshootout.cli.parser.completion_parser",
    ):
        assert words in text


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        parse(["--version"])
    assert leaving.value.code == 0
    assert capsys.readouterr().out == f"zodbshootout {version('zodbshootout')}\n"


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("--thr", ["--threads"]),
        ("--threads s", ["shared"]),
        ("sh", ["show"]),
        ("prefe", ["prefetch_cold"]),
    ],
)  # fmt: skip
def test_a_shell_completes_options_commands_and_benchmarks(
    typed: str, completed: list[str]
) -> None:
    words = typed.split()
    script = (
        f"{shtab.complete(completion_parser(), 'bash')}\n"
        f"COMP_WORDS=(zodbshootout {typed}); COMP_CWORD={len(words)}; _shtab_zodbshootout\n"
        'echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.split() == completed
    assert "#compdef zodbshootout" in shtab.complete(completion_parser(), "zsh")


def test_for_some_time_replaces_the_precision_and_has_a_unit() -> None:
    effort = parse(["--for", "30min"]).effort
    assert (effort.duration, effort.processes, effort.precision) == (1800.0, 1, 0.0)
    assert parse(["--for", "90s"]).effort.duration == 90.0
    assert parse(["--for", "2h", "--rate", "20"]).effort.duration == 7200.0


def test_an_operation_refuses_benchmarks_that_contradict_it() -> None:
    options = parse(["add", "--rate", "20", "--during", "pack"])
    assert options.sweep.base.during == "pack"
    for words, message in {
        ("pack", "--during", "pack", "--rate", "9"): "one client at a time can pack a database",
        ("replay", "--workload", "plone", "--rate", "9", "--during", "restart"): "clients of re",
        ("add", "--during", "sleep", "--rate", "9"): "invalid choice",
    }.items():
        with pytest.raises(UserError, match=message):
            parse(list(words))
