"""The course of a shootout: turns, fork servers, calibration and progress."""

from __future__ import annotations

from typing import Any

from tests.runs import contender, plan_of
from tests.scheduling.faked_shootout import (
    Event,
    Site,
    run_shootout,
)
from zodbshootout.crews.cluster import Cluster
from zodbshootout.model.specification import (
    Interpreter,
)
from zodbshootout.model.storage_facts import Sharing


def test_trap_13_contenders_of_a_row_are_set_up_together_and_take_slices_in_turn() -> None:
    outcome = run_shootout(plan_of("abc", processes=2, values=4))
    rounds: list[list[Event]] = []
    for event in outcome.site.did("fork", "set up", "slice"):
        if event.call == "fork":
            rounds.append([])
        else:
            rounds[-1].append(event)
    assert len(rounds) == 2
    for first, events in zip((0, 4), rounds, strict=True):
        assert [event.call for event in events] == ["set up"] * 3 + ["slice"] * 12
        slices = [event for event in events if event.call == "slice"]
        assert [event.detail for event in slices] == [first + k for k in range(4) for _ in "abc"]
        for turn in range(4):
            assert {x.contender for x in slices[3 * turn : 3 * turn + 3]} == set("abc")
    # The workers of a round have ended before the next slices.
    calls = [event.call for event in outcome.site.did("slice", "end")]
    assert calls == (["slice"] * 12 + ["end"] * 3) * 2


def test_the_next_row_is_set_up_while_a_row_checks_its_work() -> None:
    outcome = run_shootout(plan_of("ab", ["hot", "cold"], processes=3))
    names = [sorted(together) for together in outcome.site.together]
    assert names == [["a"], ["a", "b"], *[["a", "a", "b"], ["a", "a", "b", "b"]] * 5]


def test_no_row_is_set_up_early_that_needs_another_database_or_a_closed_one() -> None:
    exclusive = contender("a", sharing=Sharing.EXCLUSIVE)
    assert run_shootout(plan_of([exclusive], ["hot"])).site.together == [["a"]] * 3
    # The other contender of the row is set up early all the same.
    together = run_shootout(plan_of([exclusive, "b"], ["hot"], processes=2)).site.together
    assert together == [["a"], ["a", "b"], ["a", "b", "b"], ["b", "a"]]
    zapped = run_shootout(plan_of("a", ["add"]), zapped={"a"})
    assert zapped.site.together == [["a"]] * 3
    # The data of the second row are made when the first row has ended.
    assert run_shootout(plan_of("a", ["add", "cold"], processes=1)).site.together == [["a"]] * 2


def test_the_order_of_slices_depends_only_on_seed_benchmark_and_run() -> None:
    def order(benchmark: str, seed: int, **site: Any) -> list[str]:
        outcome = run_shootout(plan_of("abcd", [benchmark], {"seed": seed}, values=5), Site(**site))
        slices = "".join(event.contender for event in outcome.site.did("slice"))
        return [slices[20 * number : 20 * number + 20] for number in range(3)]

    assert order("cold", 1) == order("cold", 1, seconds={"a": 9.0})
    assert order("cold", 1) != order("cold", 2)
    assert order("cold", 1) != order("hot", 1)
    assert len(set(order("cold", 1))) == 3


def test_each_run_of_a_cell_has_another_fork_server_that_imports_the_contenders_modules() -> None:
    contenders = [
        contender("a", modules=("one", "two.sub")),
        contender("b", modules=("two.sub",)),
    ]
    outcome = run_shootout(plan_of(contenders, ["tpc", "new_oid"], processes=3))
    assert outcome.site.imported == {("one", "two.sub")}
    for benchmark in ("tpc", "new_oid"):
        servers = [server for name, _, server in outcome.site.started if name == benchmark]
        assert len(set(servers)) == 3
        assert servers[::2] == servers[1::2]


def test_each_environment_has_a_fork_server_in_each_round_with_its_own_modules() -> None:
    there = Interpreter("there", "python", "modules")
    contenders = [
        contender("a", modules=("one",)),
        contender("b", modules=("two",), interpreter=there),
        contender("c", modules=("three",), interpreter=there),
    ]
    outcome = run_shootout(plan_of(contenders, ["cold"], processes=2))
    assert outcome.site.imported == {("one",), ("two", "three")}
    assert [event.contender for event in outcome.site.did("fork")] == ["", "there"] * 2


def test_clients_on_hosts_are_reached_from_the_commands_python() -> None:
    patched = Interpreter("", "python", "", gevent=True)
    contenders = [contender("a", interpreter=patched)]
    cluster = Cluster("tcp://a:1", [], here=True)
    outcome = run_shootout(plan_of(contenders, ["cold"], processes=1), cluster=cluster)
    assert [event.call for event in outcome.site.did("fork", "prepare", "set up")] == [
        "fork", "prepare", "fork", "set up",
    ]  # fmt: skip


def test_rows_that_take_turns_have_a_fork_server_in_common_for_each_round() -> None:
    outcome = run_shootout(
        plan_of("ab", ["add", "cold", "hot"], processes=3, precision=10.0, limit=1e6)
    )
    servers = {
        name: [server for benchmark, _, server in outcome.site.started if benchmark == name]
        for name in ("add", "cold", "hot")
    }
    # The first row has its rounds before the others, so that it soon has a verdict.
    assert servers == {
        "add": [1, 1, 2, 2, 3, 3],
        **{name: [3, 3, 4, 4, 5, 5] for name in ("cold", "hot")},
    }
    assert len(outcome.site.did("fork")) == 5


def test_a_fork_server_that_cannot_be_used_any_more_is_replaced() -> None:
    site = Site(usable=lambda: len(site.did("fork")) > 1)
    run_shootout(plan_of("ab", ["tpc", "new_oid", "hot"], processes=1), site)
    assert len(site.did("fork")) == 2


def test_benchmarks_run_in_sequence_and_prepare_all_before_setting_up_any() -> None:
    outcome = run_shootout(plan_of("ab", ["add", "cold"], processes=1))
    assert [event[:3] for event in outcome.site.did("prepare", "set up", "finish")] == [
        (call, benchmark, name)
        for benchmark in ("add", "cold")
        for call in ("prepare", "set up", "finish")
        for name in "ab"
    ]


def test_progress_names_the_contenders_that_are_at_work() -> None:
    outcome = run_shootout(plan_of("ab", processes=1))
    assert outcome.observer.stages == [
        ("preparing the database", "a"),
        ("preparing the database", "b"),
        ("setting up", "ab"),
        ("run 1 of 1", "ab"),
    ]


def test_trap_14_every_run_has_the_calibrated_loops_and_calibration_is_no_run() -> None:
    site = Site(seconds={"a": 0.011, "b": 0.02, "slow": 0.9})
    outcome = run_shootout(plan_of(["a", "b", "slow"], loops=0, values=2), site)
    begun = [(event.contender, event.detail) for event in site.did("begin")]
    assert begun == [("a", (16, 2, 0)), ("b", (8, 2, 0)), ("slow", (1, 2, 0))] * 3
    for result in outcome.results:
        assert len(result.runs) == 3
        assert len(result.benchmark().get_values()) == 6


def test_loops_are_chosen_once_for_all_runs() -> None:
    site = Site(seconds={"a": 0.011})
    run_shootout(plan_of("a", loops=0), site)
    last = [event.call for event in site.events].index("begin")
    later = [event.detail for event in site.events[last:] if event.call == "attempt"]
    assert later == [1, 1]
