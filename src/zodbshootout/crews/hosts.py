"""A crew whose clients live on several hosts, in the workers of a Dask cluster.

Dask carries what is set up, ordered and reported.  Between a start and a stop nothing is sent: the
clients of each host start at an instant of its own clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from zodbshootout.client import protocol
from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.clock import Clock, SystemClock
from zodbshootout.client.outcome import Failed, Failure, failure_of
from zodbshootout.client.specification import ClientKind
from zodbshootout.crews.agent import Agent, Equipment
from zodbshootout.crews.clocks import Offset
from zodbshootout.crews.cluster import Cluster, addresses
from zodbshootout.crews.crew import Crew
from zodbshootout.crews.interpreters import LogSettings
from zodbshootout.crews.remote import Order, StartCrew

R = TypeVar("R")

ROUND_TRIPS = 10
"""How often a clock is asked for the time before a slice, at most; the shortest trip counts."""
CLOSE = 0.001
"""Seconds within which a clock is known well enough for not being asked again."""
MAX_UNCERTAIN = 0.1
"""From such a part of a slice on, what is not known of clocks makes the slice worthless."""
ATTEMPTS = 3
"""How often a slice is measured until it is worth something."""
MORE_OBJECTS = "more objects with --object-counts"
MORE_TIME = "more time with --min-time, or "
CLOSELY = 1.5
"""A trip that took at most so many times as long as the shortest one is good enough."""
SETTING_UP = 60.0
"""Seconds in which a host has to start its interpreter: a worker that is lost starts none."""


class Future(Protocol):
    """What will be answered."""

    def result(self, timeout: float | None = None) -> Any:
        """Wait for it, so many seconds at most."""


class Actor(Protocol):
    """An :class:`Agent` on another host."""

    def ask(self, message: object) -> Future:
        """Return what the clients there answer."""

    def now(self) -> Future:
        """Return what time it is there."""


@dataclass
class Host:
    """Some of the clients of a crew."""

    name: str
    actor: Actor
    clients: Sequence[int]
    offset: Offset = field(default_factory=lambda: Offset(0.0, 0.0, 0.0))


class HostsCrew(Crew):
    """Passes orders on, each in one message for all clients of a host."""

    def __init__(self, size: int, clock: Clock, hosts: Sequence[Host], lead: StartCrew) -> None:
        """Prepare the crew that *lead* tells of; *hosts* have all of its clients."""
        super().__init__(size, clock)
        self._hosts = hosts
        self._lead = lead
        self.hosts = {host.name: host.clients for host in hosts}

    def start(self) -> None:
        """Have the clients started, and set up.

        :raises Failed: when one cannot be
        """
        self._answers(
            {host.name: replace(self._lead, clients=host.clients) for host in self._hosts}
        )
        for host in self._hosts:
            host.offset = self._offset(host)

    def ask(self, order: Any, answer: type[R], clients: Sequence[int] | None = None) -> list[R]:
        """Send an order to all clients, or to those named; return their reports in this order.

        :raises Failed: when one does not *answer* as it should, or is gone
        """
        asked = range(self.size) if clients is None else clients
        orders: dict[str, object] = {}
        for host in self._hosts:
            local = [number for number, each in enumerate(host.clients) if each in asked]
            if local:
                orders[host.name] = Order(_on_clock_of(host, order), answer, local)
        answers = self._answers(orders)
        reports: dict[int, R] = {}
        for host in self._hosts:
            there = [each for each in host.clients if each in asked]
            found = answers.get(host.name, ())
            reports |= {
                each: _on_our_clock(host, report) for each, report in zip(there, found, strict=True)
            }
        return [reports[each] for each in asked]

    def _answers(self, messages: Mapping[str, object]) -> dict[str, Any]:
        """Return what hosts answer, by their names; all are asked at once.

        :raises Failed: naming the host
        """
        asked = []
        for host in self._hosts:
            if host.name in messages:
                with _host_called(host.name):
                    asked.append((host.name, host.actor.ask(messages[host.name])))
        return {name: _result(name, future) for name, future in asked}

    def _prepare(self, order: protocol.Prepare) -> None:
        super()._prepare(order)
        self._compare_clocks()
        # Orders arrive one after the other, and each takes a trip.
        trip = 2 * max(host.offset.uncertainty for host in self._hosts)
        self._notice = max(self._notice, 2 * trip)

    def _compare_clocks(self) -> None:
        """Find the offsets of all hosts.

        :raises Failed: when one is not what it was
        """
        for host in self._hosts:
            found = self._offset(host)
            if found.contradicts(host.offset):
                jump = 1000 * (found.seconds - host.offset.seconds)
                cause = f"host {host.name}: its clock has jumped by {jump:+.1f} ms"
                raise Failed(Failure(cause))
            host.offset = found

    def _offset(self, host: Host) -> Offset:
        """Ask a host for the time (Cristian, "Probabilistic clock synchronization", 1989)."""
        found = []
        enough = max(CLOSE, CLOSELY * host.offset.uncertainty)
        for _ in range(ROUND_TRIPS):
            before = self._clock.now()
            with _host_called(host.name):
                there = host.actor.now().result()
            after = self._clock.now()
            found.append(Offset(after, there - (before + after) / 2, (after - before) / 2))
            if found[-1].uncertainty <= enough:
                break
        return min(found, key=lambda offset: offset.uncertainty)

    def _stretch(self, prepare: protocol.Prepare) -> list[protocol.Stretch]:
        for _ in range(ATTEMPTS):
            if self._prepared != prepare:
                self._prepare(prepare)
            offsets = {host.name: host.offset for host in self._hosts}
            stretches = super()._stretch(prepare)
            self._compare_clocks()
            refusal = self._refusal(stretches, prepare, offsets)
            if refusal is None:
                return stretches
        raise Failed(Failure(f"{refusal}; in {ATTEMPTS} attempts"))

    def _refusal(
        self,
        stretches: Sequence[protocol.Stretch],
        prepare: protocol.Prepare,
        offsets: Mapping[str, Offset],
    ) -> str | None:
        """Say why what was measured is worthless, if it is.

        It was started with the *offsets* that were known then.
        """
        if not prepare.counts:
            return None
        start = min(each.progress.start for each in stretches)
        length = max(each.progress.end(prepare.iterations) for each in stretches) - start
        # Where each iteration has a start of its own, more of them make a stretch no longer.
        advice = f"give slices {MORE_TIME if self.most_at_once > 1 else ''}{MORE_OBJECTS}"
        unsure = {name: each.uncertainty_at(start) for name, each in offsets.items()}
        worst = max(unsure, key=unsure.__getitem__)
        late = max(each.late for each in stretches)
        if unsure[worst] > MAX_UNCERTAIN * length:
            return (
                f"host {worst}: its clock is known within {1000 * unsure[worst]:.1f} ms, and a "
                f"slice took only {1000 * length:.1f} ms; {advice}"
            )
        if late > MAX_UNCERTAIN * length:
            return (
                f"a client started {1000 * late:.1f} ms late, and a slice took only "
                f"{1000 * length:.1f} ms; {advice}"
            )
        self.clock_uncertainty = max(self.clock_uncertainty, unsure[worst])
        return None


@contextmanager
def _host_called(name: str) -> Iterator[None]:
    """Raise what goes wrong meanwhile as the failure of a host.

    :raises Failed: naming the host
    """
    try:
        yield
    except Failed as error:
        cause = f"host {name}: {error.failure.cause}"
        raise Failed(replace(error.failure, cause=cause)) from error
    except TimeoutError as error:
        cause = f"host {name} has started no process for its clients within {SETTING_UP:g} s"
        raise Failed(Failure(cause)) from error
    except Exception as error:
        # What went wrong on the host itself has a number; a connection that is gone has none.
        at_work = isinstance(error, OSError) and error.errno is not None
        lost = not at_work or isinstance(error, ConnectionError)
        cause = f"host {name}{' was lost' if lost else ''}: {failure_of(error).cause}"
        raise Failed(Failure(cause)) from error


def _result(name: str, future: Future, timeout: float | None = None) -> Any:
    """Wait for an answer, so many seconds at most.

    :raises Failed: naming the host, when that is a failure or the host is lost
    """
    with _host_called(name):
        found = future.result(timeout)
        if isinstance(found, Failure):
            raise Failed(found)
        return found


def _on_clock_of(host: Host, order: Any) -> Any:
    if isinstance(order, protocol.Start):
        return protocol.Start(order.instant + host.offset.seconds)
    return order


def _on_our_clock(host: Host, report: Any) -> Any:
    if not isinstance(report, protocol.Stretch):
        return report
    ahead, progress = host.offset.seconds, report.progress
    shifted = replace(
        progress, start=progress.start - ahead, times=[each - ahead for each in progress.times]
    )
    return replace(report, progress=shifted)


def equipment(
    names: Mapping[str, str], variables: Mapping[str, str], cluster: Cluster
) -> Equipment:
    """Return what the hosts of a cluster need of the files that *names* are the paths of."""
    if cluster.here:
        return Equipment(variables)
    paths = {name: Path(value) for name, value in names.items() if Path(value).is_absolute()}
    return Equipment(
        variables,
        {name: path.read_bytes() for name, path in paths.items() if path.is_file()},
        [name for name, path in paths.items() if path.is_dir()],
    )


@contextmanager
def hosts_crew(
    cluster: Cluster,
    lead: StartCrew,
    hello: LogSettings,
    variables: Mapping[str, str],
    clock: Clock | None = None,
) -> Iterator[Crew]:
    """Have a crew on the workers of a Dask cluster, every client of which is set up.

    The clients have more *variables* in their environment than their host has.

    :raises Failed: when a client fails, or a host is lost
    """
    specification = lead.specification
    parameters = specification.parameters
    size = parameters.crew.size
    sent = equipment(specification.storage.names, variables, cluster)
    with ExitStack() as stack:
        try:
            client = stack.enter_context(cluster.client())
        except OSError as error:
            cause = f"the cluster's scheduler at {cluster.scheduler} does not answer"
            raise Failed(Failure(cause, failure_of(error).detail)) from error
        gevent = parameters.crew.client_kind is ClientKind.GREENLET
        agent = partial(Agent, hello=hello, equipment=sent, gevent=gevent)
        hosts = _hosts(client, cluster, size, agent)
        crew = HostsCrew(size, clock or SystemClock(), hosts, lead)
        crew.most_at_once = benchmarks()[specification.benchmark].most_at_once(parameters)
        with crew:
            yield crew


def _hosts(client: Any, cluster: Cluster, size: int, agent: Callable[[], Agent]) -> list[Host]:
    """Return the hosts of *size* clients, with an agent on each.

    :raises Failed: when one cannot be had
    """
    there = addresses(client)
    begun = []
    for worker, clients in zip(cluster.workers, cluster.shares(size), strict=True):
        if not clients:
            continue
        if worker.name not in there:
            raise Failed(Failure(f"host {worker} has left the cluster"))
        future = client.submit(
            agent, actor=True, pure=False,
            workers=[there[worker.name]], allow_other_workers=False, retries=0,
        )  # fmt: skip
        begun.append((str(worker), future, clients))
    return [
        Host(name, _result(name, future, SETTING_UP), clients) for name, future, clients in begun
    ]
