"""Notes on caches: hit rates, and caches that may have served cold reads."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from zodbshootout.model.grouping import grouped
from zodbshootout.model.quantities import CACHEABLE_HITS
from zodbshootout.reports.cells import Cells
from zodbshootout.results.result import CellResult

SMALL_SHARE = 0.9
"""If a cache served less than this share of the loads that it could serve, a note asks why."""
NEXT_TO_NOTHING = 0.01
"""The limit that replaces :data:`SMALL_SHARE` if objects changed after they were cached."""


def cache_notes(cells: Cells) -> Iterator[str]:
    """Yield lines with the hit rates of persistent caches, and with low hit rates of other caches.

    Only a persistent cache can serve the loads of a DB that was just opened.
    """
    known = [cell for cell in cells if cell[1].figures[CACHEABLE_HITS]]
    lasting = [cell for cell in known if "openings_without_hits" in cell[1].metadata]
    persistent = grouped(
        ((cell[1].cell.benchmark, setting, cell[1].metadata.get("persistent_cache_flaw")), cell)
        for cell in lasting
        if (setting := cell[1].metadata.get("persistent_cache"))
    )
    for (benchmark, setting, flaw), own in persistent.items():
        columns = grouped(own)
        reason = flaw or _reason(columns)
        few = any(map(_is_small, columns.values()))
        served = f"{benchmark}: the persistent cache ({setting}) served {_listed(columns)}"
        yield f"{served}: {reason}" if few else served
    others = grouped((cell[1].cell.benchmark, cell) for cell in known if cell not in lasting)
    for benchmark, own in others.items():
        small = {column: results for column, results in grouped(own).items() if _is_small(results)}
        if small:
            yield (
                f"{benchmark}: the storage's cache served {_listed(small)}: is it too small for "
                "these objects?"
            )


def caches_left(cells: Cells) -> Iterator[str]:
    """Yield a line that names the caches that may have served cold reads."""
    uncleared = cells.only(lambda result: result.uncleared_caches)
    caches = grouped(
        (cache, column) for column, result in uncleared for cache in result.uncleared_caches
    )
    if caches:
        names = uncleared.benchmarks
        listed = "; ".join(
            f"{cache} ({', '.join(dict.fromkeys(columns))})" for cache, columns in caches.items()
        )
        yield (
            f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} not from disk: "
            f"these caches were still in memory: {listed}"
        )


def _share(result: CellResult) -> float:
    """Return the share of the loads that the cache served."""
    figure = result.figures[CACHEABLE_HITS]
    return figure.value if figure else 0.0


def _is_small(results: Sequence[CellResult]) -> bool:
    """Return whether, in any result, the cache served fewer loads than expected."""
    limits = (NEXT_TO_NOTHING if _is_old(result) else SMALL_SHARE for result in results)
    return any(_share(result) < limit for result, limit in zip(results, limits, strict=True))


def _is_old(result: CellResult) -> bool:
    """Return whether some objects had changed since they were cached."""
    return any(facts.get("changed_loads") for facts in result.facts)


def _reason(columns: Mapping[str, Sequence[CellResult]]) -> str:
    if any(map(_is_old, itertools.chain.from_iterable(columns.values()))):
        return "can clients read and write it, and does the server report every change?"
    return "can clients read and write it, and is it large enough?"


def _listed(columns: Mapping[str, Sequence[CellResult]]) -> str:
    """Return the shares in words; columns with the same share are joined."""
    by_share = grouped(
        (_extremes(results), f"{column}{_lost(results)}") for column, results in columns.items()
    )
    first, *rest = (f"{share} of {', '.join(names)}" for share, names in by_share.items())
    return "; ".join([first.replace(" of ", " of the loads of ", 1), *rest])


def _extremes(results: Sequence[CellResult]) -> str:
    shares = [f"{share:.0%}" for share in sorted(map(_share, results))]
    return " to ".join(dict.fromkeys([shares[0], shares[-1]]))


def _lost(results: Sequence[CellResult]) -> str:
    """Return the number of openings in which a persistent cache served nothing, in words.

    The text is empty if this happened in no opening, or in every opening.
    """
    lost, openings = (
        sum(facts.get(name, 0) for result in results for facts in result.facts)
        for name in ("openings_without_hits", "iterations")
    )
    return f" (nothing in {lost:.0f} of {openings:.0f} openings)" if 0 < lost < openings else ""
