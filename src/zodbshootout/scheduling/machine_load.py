"""The load that other programs and other virtual machines put on the machine."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class MachineLoad:
    """Seconds of all processors together, since a fixed time such as the start of the machine."""

    all: float
    busy: float
    """Seconds in which processors were neither idle nor waiting for a disk, including the seconds
    of other virtual machines."""
    steal: float
    """Seconds of other virtual machines; 0 if the system does not count them."""
    ours: float
    """Seconds of this process and its descendants."""

    def since(self, before: MachineLoad) -> dict[str, float]:
        """Return the fractions of processor time that others used since *before*, as metadata.

        Other virtual machines used ``steal``.  Programs on this machine, except this process and
        its descendants, used ``other_load``.
        """
        total = self.all - before.all
        if total <= 0:
            return {}
        steal = max(0.0, self.steal - before.steal)
        others = self.busy - before.busy - steal - (self.ours - before.ours)
        parts = {"other_load": max(0.0, others), "steal": steal}
        return {name: round(min(1.0, seconds / total), 3) for name, seconds in parts.items()}


def load_now() -> MachineLoad:
    """Return the load of the machine up to now."""
    times = psutil.cpu_times()._asdict()
    counted = {name: times[name] for name in times if not name.startswith("guest")}
    idle = times["idle"] + times.get("iowait", 0.0)
    total = sum(counted.values())
    this = psutil.Process()
    ours = 0.0
    for process in (this, *this.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # the parent counts the seconds of an ended process
            ours += sum(process.cpu_times()[:4])  # includes children that have ended
    return MachineLoad(total, total - idle, times.get("steal", 0.0), ours)
