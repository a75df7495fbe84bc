"""Calibrate the relays of a run, on this machine or on the clients' hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zodbshootout.crews.cluster import Cluster, addresses
from zodbshootout.crews.hosts import failures_of
from zodbshootout.errors import UserError
from zodbshootout.model.outcome import Failed, Failure
from zodbshootout.model.specification import duration
from zodbshootout.network.calibration import Calibration, calibrations, longest
from zodbshootout.network.relays import RelayError
from zodbshootout.scheduling.plan import Plan
from zodbshootout.scheduling.result_store import Observer
from zodbshootout.workers.measuring import Calibrations


def calibrations_for(plan: Plan, cluster: Cluster | None, observer: Observer) -> Calibrations:
    """Calibrate relays once for each round-trip time of a plan's contenders.

    The *observer* shows a line for each round-trip time that a machine cannot deliver.

    :raises UserError: if a relay does not work, or a host is lost
    """
    rtts = sorted({server.rtt for one in plan.opened for server in one.storage.servers} - {0.0})
    if not rtts:
        return {}
    observer.note(f"calibrating round-trip times of {' and '.join(map(duration, rtts))}")
    made = {"": _here(rtts)} if cluster is None else _on_hosts(cluster, rtts)
    for host, by_rtt in made.items():
        for rtt, calibration in by_rtt.items():
            if not calibration.is_delivered:
                observer.relay(
                    f"round trips of {duration(rtt)} take {1e3 * calibration.p50:.3g} ms: "
                    f"{host or 'this machine'} is too slow or too busy to deliver them"
                )
    return made


def _here(rtts: Sequence[float]) -> Mapping[float, Calibration]:
    try:
        return calibrations(rtts)
    except (OSError, RelayError) as error:
        raise UserError(f"the relay between clients and servers: {error}") from error


def _on_hosts(cluster: Cluster, rtts: Sequence[float]) -> Calibrations:
    """Let all hosts calibrate at the same time, since their clients will also work together.

    The wait for a host is limited, because Dask waits forever for a host that has left.
    """
    patience = longest(rtts)
    futures = {}
    made = {}
    try:
        with cluster.client() as client:
            there = addresses(client)
            for worker in cluster.workers:
                with failures_of(str(worker)):
                    futures[str(worker)] = client.submit(
                        calibrations, rtts, pure=False, retries=0,
                        workers=[there[worker.name]], allow_other_workers=False,
                    )  # fmt: skip
            for host, future in futures.items():
                with failures_of(host):
                    made[host] = _result(future, patience)
    except (OSError, Failed) as error:
        raise UserError(f"--hosts: {error}") from error
    return made


def _result(future: Any, patience: float) -> Mapping[float, Calibration]:
    try:
        result: Mapping[float, Calibration] = future.result(patience)
    except TimeoutError as error:
        cause = f"its relay was not calibrated within {patience:g} s"
        raise Failed(Failure(cause)) from error
    return result
