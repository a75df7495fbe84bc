"""Verdicts of ``zodbshootout compare`` on equal contenders, and on two whose speeds are known.

The equal ones (A/A) are those of :mod:`benchmarks.precision`: ZEO twice and RelStorage on SQLite
twice.  They are measured ten times, each time until every cell is known within 10 % or 12 minutes
have passed.  No cell may be called faster or slower.

Then two MappingStorages are measured, one of which spins for another 5 % of the time after each
call (:mod:`benchmarks.spinning`), in ``store``, which does little but call the storage, at a
precision of 2 %.  On a disk, the disk would take most of the time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from benchmarks.command import Done, shoot_out
from benchmarks.line import Line, at_least, at_most, info
from benchmarks.precision import CONFIGURATION, TWINS
from zodbshootout.model.quantities import Quantity
from zodbshootout.results.changes import Change
from zodbshootout.results.ratios import Verdict
from zodbshootout.results.sides import compare

TIMES = 10
MORE = 0.05
SPINNING = "%import benchmarks.spinning\n" + "".join(
    f"""
<zodb {name}>
    <spinningstorage>
        more {more}
    </spinningstorage>
</zodb>
"""
    for name, more in (("plain", 0), ("slower", MORE))
)


def measure(*, quick: bool) -> Iterator[Line]:
    """Yield the verdicts on equal contenders, and on one that has 5 % more to do."""
    until_known = ["--precision", "10%", "--at-most", "12"]
    effort = ["-p", "3", "-n", "4", "--min-time", "0.02"] if quick else until_known
    counts: Counter[Verdict] = Counter()
    for number in range(1 if quick else TIMES):
        done = shoot_out(CONFIGURATION, "-c", "2", *effort)
        changes = [change for names in TWINS for change in compared(done, names)]
        counts.update(change.verdict for change in changes)
        different = called_different(changes)
        yield info(f"verdicts: A/A {number + 1}, seconds", done.wall, "{:.0f}")
        yield at_most(f"verdicts: A/A {number + 1}, called different", different, 0, "{:.0f}")
    for verdict in Verdict:
        yield info(f"verdicts: A/A, {verdict.value}", counts[verdict], "{:.0f}")
    effort = ["-p", "5"] if quick else ["--precision", "2%", "--at-most", "5"]
    done = shoot_out(SPINNING, "store", "--threads", "-c", "1", *effort)
    (change,) = compared(done, ("plain", "slower"))
    yield info("verdicts: 5 % more to do, ratio", change.ratio.value, "{:.3f}")
    yield info("verdicts: lower end of its interval", change.ratio.interval[0], "{:.3f}")
    yield info("verdicts: upper end of its interval", change.ratio.interval[1], "{:.3f}")
    is_slower = change.verdict is Verdict.SLOWER
    yield at_least("verdicts: 5 % more to do, called slower", is_slower, 1, "{:.0f}")


def compared(
    done: Done, names: Sequence[str], quantity: Quantity | None = None
) -> Sequence[Change]:
    """Return the changes between two contenders."""
    base, new = ([result for result in done.results if result.cell.title == name] for name in names)
    return compare(base, new, across=True, quantity=quantity).changes


def called_different(changes: Iterable[Change]) -> int:
    """Return the number of changes by which one contender is called faster."""
    return sum(change.verdict in {Verdict.FASTER, Verdict.SLOWER} for change in changes)
