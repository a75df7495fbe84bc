"""Contenders before, during and after an operation, in a shootout of fakes."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.runs import contender, plan_of
from tests.scheduling.faked_shootout import (
    BROKE,
    Event,
    FakedShootout,
    Site,
    failing,
    run_shootout,
)
from zodbshootout.config.configuration import ServerSection
from zodbshootout.model.outcome import Failure
from zodbshootout.model.specification import (
    ClientKind,
    CrewShape,
    Parameters,
)
from zodbshootout.model.storage_facts import Sharing
from zodbshootout.scheduling.operations import slices_before

DURING = {"rate": 20.0, "during": "pack", "garbage": 0.3, "revisions": 3}


def states_of_phases(outcome: FakedShootout) -> dict[str, list[str]]:
    states: dict[str, list[str]] = {}
    for result in outcome.results:
        states.setdefault(result.cell.contender, []).append(result.state.value)
    return states


def test_a_contender_after_the_other_is_measured_before_during_and_after_an_operation() -> None:
    outcome = run_shootout(plan_of("ab", shaped=DURING, processes=2))
    assert [result.cell.parameters.moment for result in outcome.results] == [
        "before pack", "during pack", "after pack",
    ] * 2  # fmt: skip
    assert [len(result.runs) for result in outcome.results] == [2] * 6
    assert outcome.site.together == [["a"], ["b"]] * 2
    during = outcome.results[1].runs[0].get_metadata()
    assert (during["operation_s"], during["during"], during["phase"]) == (3.0, "pack", "during")
    operations = [event.detail for event in outcome.site.did("prepare_operation")]
    assert [(one.benchmark, one.storage.section) for one in operations] == [
        ("pack", "a"), ("pack", "b"),
    ] * 2  # fmt: skip
    assert operations[0].parameters.owner == "a"
    opened = [event.detail for event in outcome.site.did("operator")]
    assert [(storage.section, calibrations) for storage, calibrations in opened] == [
        ("a", {}), ("b", {}),
    ] * 2  # fmt: skip
    rounds = [run.get_metadata()["round"] for run in outcome.results[0].runs]
    assert rounds == [run.get_metadata()["round"] for run in outcome.results[4].runs]
    assert len(set(rounds)) == 2


def test_the_cells_of_a_contender_fail_together_if_its_operation_fails() -> None:
    def break_once(event: Event, nth: int) -> Failure | None:
        return BROKE if event.call == "operation_times" and nth == 0 else None

    outcome = run_shootout(plan_of("ab", shaped=DURING, processes=2), Site(break_once))
    assert states_of_phases(outcome) == {"a": ["failed"] * 3, "b": ["measured"] * 3}


def test_an_operation_whose_process_cannot_be_started_fails_its_contender_alone() -> None:
    site = Site(failing("operator", "", benchmark="pack"))
    outcome = run_shootout(plan_of("ab", shaped=DURING, processes=1), site)
    assert states_of_phases(outcome) == {"a": ["failed"] * 3, "b": ["measured"] * 3}


def test_the_run_of_an_operation_whose_process_has_crashed_is_repeated() -> None:
    crash = replace(BROKE, crashed=True)

    def crash_once(event: Event, nth: int) -> Failure | None:
        return crash if event.call == "start_operation" and nth == 0 else None

    outcome = run_shootout(plan_of("a", shaped=DURING, processes=2), Site(crash_once), retries=1)
    assert states_of_phases(outcome) == {"a": ["measured"] * 3}
    assert [len(result.runs) for result in outcome.results] == [2] * 3
    assert [result.crashes for result in outcome.results] == [("it broke",)] * 3


def test_a_client_that_fails_during_an_operation_fails_all_phases() -> None:
    site = Site(failing("slice", "a", nth=6))
    outcome = run_shootout(plan_of("a", shaped=DURING, processes=1), site)
    assert states_of_phases(outcome) == {"a": ["failed"] * 3}
    assert not any(result.runs for result in outcome.results)


def test_a_database_that_cannot_be_prepared_fails_all_phases() -> None:
    site = Site(failing("prepare", "a"))
    outcome = run_shootout(plan_of("a", shaped=DURING, processes=1), site)
    assert states_of_phases(outcome) == {"a": ["failed"] * 3}


def test_a_storage_that_one_db_at_a_time_can_open_is_packed_by_its_clients_process() -> None:
    alone = contender("a", sharing=Sharing.EXCLUSIVE)
    plan = plan_of([alone], shaped=DURING, processes=1)
    outcome = run_shootout(plan)
    assert states_of_phases(outcome) == {"a": ["not supported"] * 3}
    shared = CrewShape(2, ClientKind.THREAD, shared=True)
    plan = plan_of([alone], shaped={**DURING, "crew": shared}, processes=1)
    outcome = run_shootout(plan)
    assert states_of_phases(outcome) == {"a": ["measured"] * 3}
    assert outcome.site.did("operator") == []
    assert [event.contender for event in outcome.site.did("start_operation")] == ["a"]


def test_what_is_prepared_once_is_not_taken_for_the_time_of_later_rounds() -> None:
    outcome = run_shootout(plan_of("a", shaped=DURING, processes=2), Site(costs={"prepare": 900}))
    assert len(outcome.site.did("prepare")) == 1
    assert outcome.observer.estimates[-1] < 900


def restarted(how: str, site: Site | None = None) -> FakedShootout:
    section = SimpleNamespace(getSectionName=lambda: "main", getSectionType=lambda: "zeoserver")
    served = replace(contender("a"), servers={"main": ServerSection(section)})
    plan = plan_of([served, "b"], shaped={"rate": 20.0, "during": how}, processes=1)
    return run_shootout(plan, site)


@pytest.mark.parametrize(("how", "ended"), [("restart", "kill"), ("restart:clean", "halt")])
def test_private_servers_are_restarted_while_clients_go_on(how: str, ended: str) -> None:
    outcome = restarted(how)
    assert states_of_phases(outcome) == {"a": ["measured"] * 3, "b": ["not supported"] * 3}
    assert "did not start a server that it could restart" in outcome.results[3].reason
    assert [event.call for event in outcome.site.did("kill", "halt", "resume")] == [ended, "resume"]
    (event,) = outcome.site.did("recovered")
    assert event.contender == "a"
    assert outcome.site.did("start_operation") == []


def test_a_restart_ends_before_the_clients_do_if_one_of_them_fails() -> None:
    class SlowSite(Site):
        def halt_for(self, contender: str, *, by_force: bool) -> None:
            time.sleep(0.05)
            super().halt_for(contender, by_force=by_force)

    before = 1 + slices_before(Parameters(CrewShape(1), rate=20.0))
    outcome = restarted("restart", SlowSite(failing("slice", "a", nth=before)))
    assert states_of_phases(outcome)["a"] == ["failed"] * 3
    ends = [event.call for event in outcome.site.did("kill", "resume", "end")]
    assert ends == ["kill", "resume", "end"]


def test_a_server_that_does_not_come_up_again_fails_all_phases() -> None:
    def stay_away(event: Event, _: int) -> Failure | None:
        return BROKE if event.call == "resume" else None

    outcome = restarted("restart", Site(stay_away))
    assert states_of_phases(outcome)["a"] == ["failed"] * 3
    assert outcome.results[0].reason == "server main did not come up"
