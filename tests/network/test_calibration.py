from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.network.peers import listening
from zodbshootout.network import calibration
from zodbshootout.network.calibration import MOST_EARLY, Calibration, calibrate, is_within
from zodbshootout.network.relays import Address, Lateness, Relay, RelayError

Measure = Callable[[Relay, float, float], Calibration]
RELAY = Relay(None)  # type: ignore[arg-type]  # a machine below says what it would deliver
PUNCTUAL = Lateness(100, 0.0, 0.0)


def on_a_machine(deliver: Callable[[float, float], float]) -> Measure:
    """Return what is measured if every round trip takes the same, depending on the correction."""

    def measure(_: Relay, rtt: float, early: float) -> Calibration:
        delivered = deliver(rtt, early)
        return Calibration(rtt, early, delivered, delivered, PUNCTUAL)

    return measure


def test_a_constant_addition_is_corrected(monkeypatch: pytest.MonkeyPatch) -> None:
    adding = on_a_machine(lambda rtt, early: rtt + 120e-6 - 2 * early)
    monkeypatch.setattr(calibration, "measure", adding)
    result = calibrate(RELAY, 0.001)
    assert result.early == pytest.approx(60e-6)
    assert result.p50 == pytest.approx(0.001)
    assert result.is_delivered


def test_what_is_not_delivered_is_reported_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    delivered = iter([0.009, 0.006, 0.007, 0.008])
    monkeypatch.setattr(calibration, "measure", on_a_machine(lambda *_: next(delivered)))
    result = calibrate(RELAY, 0.001)
    assert result.p50 == 0.008
    assert not result.is_delivered
    assert result.early == MOST_EARLY
    assert list(delivered) == []


@pytest.mark.parametrize(
    ("rtt", "delivered", "expected"),
    [
        (0.0002, 0.000229, True),
        (0.0002, 0.000231, False),
        (0.005, 0.00476, True),
        (0.005, 0.00474, False),
    ],
)
def test_the_tolerance_is_5_percent_or_30_microseconds(
    rtt: float, delivered: float, expected: bool
) -> None:
    assert is_within(delivered, rtt) is expected


def test_a_run_delivers_what_was_calibrated_and_what_it_is_later() -> None:
    calibrated = Calibration(0.001, 0.0, 0.001, 0.00101, Lateness(100, 500e-6, 10e-6))
    punctual, late, unused = Lateness(9, 10e-6, 5e-6), Lateness(3, 50e-6, 5e-6), Lateness(0, 0, 0)
    assert calibrated.delivered([punctual]) == pytest.approx(0.00101)
    assert calibrated.delivered([punctual, unused, late]) == pytest.approx(0.00102)
    assert calibrated.delivered([unused]) == 0.00101


def test_a_relay_that_passes_nothing_on_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "ANSWER_TIMEOUT", 0.1)
    with listening() as deaf:

        def route(*_: object, **__: object) -> Address:
            return deaf.getsockname()  # type: ignore[no-any-return]

        monkeypatch.setattr(RELAY, "route", route)
        with pytest.raises(RelayError, match="does not answer"):
            calibration.measure(RELAY, 0.001, 0.0)


@pytest.mark.slow
def test_a_relay_of_this_machine_delivers_about_what_is_asked_for() -> None:
    with Relay.start() as relay:
        result = calibrate(relay, 0.005)
    assert 0.004 < result.p50 < 0.05
    assert result.lateness.chunks > 100
