"""What the suite of faults says at its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

HERE = Path(__file__).parent.name


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Tell how many faults there were, and whether anything was lost."""
    passed, failed = (
        [each for each in terminalreporter.stats.get(kind, []) if f"/{HERE}/" in each.nodeid]
        for kind in ("passed", "failed")
    )
    if not passed + failed:
        return
    lost = "nothing that was measured was lost, and nothing left behind"
    if failed:
        lost = f"of {len(failed)} something was lost, left behind or not told"
    terminalreporter.write_line(f"{len(passed + failed)} faults in real runs: {lost}")
