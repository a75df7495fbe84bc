"""Pages that a browser has opened."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
needs_browser = [
    pytest.mark.servers("Chromium", "playwright"),
    pytest.mark.xdist_group("browser"),  # the browser and the pages are shared
]
DESKTOP, PHONE = (1280, 900), (390, 844)


@dataclass
class OpenPage:
    """An open page, its console messages and its requests."""

    page: Page
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def draw_all(self) -> int:
        """Open all folds, scroll to each chart, wait for it, and return how many there are."""
        folds = "document.querySelectorAll('.part, .inner')"
        self.page.evaluate(f"{folds}.forEach((fold) => {{ fold.open = true }})")
        charts = self.page.locator("[data-chart]:visible")
        count: int = charts.count()
        for number in range(count):
            charts.nth(number).scroll_into_view_if_needed()
            charts.nth(number).locator("svg").wait_for()
        drawn = self.page.locator("[data-drawn]:visible")
        for number in range(count):
            drawn.nth(number).wait_for()
        return count


@contextmanager
def opened(
    browser: Browser, path: Path, size: tuple[int, int] = DESKTOP, *, dark: bool = False
) -> Iterator[OpenPage]:
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if dark else "light",
        offline=True,
    )
    shown = OpenPage(context.new_page())
    shown.page.on("console", lambda message: shown.console.append(message.text))
    shown.page.on("pageerror", lambda error: shown.console.append(str(error)))
    shown.page.on("request", lambda request: shown.requests.append(request.url))
    shown.page.goto(path.as_uri())
    yield shown
    context.close()
