"""The page of a history in a browser without a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from benchmarks.histories import Simulated, step

from tests.browser.pages import DESKTOP, PHONE, needs_browser, opened
from zodbshootout.cli.report import write_report
from zodbshootout.reports import format_named
from zodbshootout.reports.history_report import history_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = needs_browser


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    history = Simulated("page", step(6))
    for number in range(10):
        history.add(canary=0.05 if number == 3 else 0.0, new_anchor=number == 8)
    path = tmp_path_factory.mktemp("history") / "history.html"
    write_report(history_report([history.history], page=True), path, format_named("html"))
    return path


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_every_cell_has_a_chart_that_fits_the_screen(
    browser: Browser,
    page: Path,
    size: tuple[int, int],
) -> None:
    with opened(browser, page, size) as shown:
        charts = shown.page.locator("[data-chart]")
        for number in range(charts.count()):
            charts.nth(number).scroll_into_view_if_needed()
            charts.nth(number).locator("canvas").wait_for()
        shown.page.locator("[data-drawn]").nth(7).wait_for()
        assert charts.count() == 8
        assert (shown.console, shown.requests) == ([], [page.as_uri()])
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= size[0]
        assert shown.page.locator("td.bad").count() == 0
        assert "2026-01-01T0003" in shown.page.inner_text("main")
