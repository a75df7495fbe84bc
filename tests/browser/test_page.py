"""The page of a report in a browser without a network."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from tests.browser.pages import DESKTOP, PHONE, needs_browser, opened
from tests.reports.at_a_rate import result as at_a_rate
from tests.reports.results import EVERYTHING, with_worker_metadata
from tests.reports.swept import CLIENTS, SWEPT, swept
from tests.runs import cell, failed, measured, noisy, unsupported
from zodbshootout.cli.report import ReportFile
from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.model.quantities import THROUGHPUT
from zodbshootout.reports import format_named
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.sections import whole_report
from zodbshootout.results.figures import Figure
from zodbshootout.results.result import CellResult

if TYPE_CHECKING:
    from playwright.sync_api import Browser

MAX_BYTES = 3_000_000
HOSTILE = "<script>document.title='run'</script>"

pytestmark = needs_browser


@pytest.fixture(scope="module")
def page_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    def write(*sources: list[CellResult], baseline: str | None = None) -> Path:
        path = tmp_path_factory.mktemp("page") / "page.html"
        labels = "ab" if len(sources) > 1 else [""]
        named = [
            ResultSet(results, label, Path(f"{label or 'out'}.json"))
            for results, label in zip(sources, labels, strict=False)
        ]
        file = ReportFile("-o", path, format_named("html"))
        file.write(whole_report(named, baseline), mock.Mock())
        return path

    return write


@pytest.fixture(scope="module")
def sweep(page_of: Callable[..., Path]) -> Path:
    return page_of(SWEPT)


in_light_and_dark = pytest.mark.parametrize(
    ("size", "dark"), [(DESKTOP, False), (PHONE, True)], ids=["desktop-light", "phone-dark"]
)


@in_light_and_dark
def test_a_page_draws_its_charts(
    browser: Browser, sweep: Path, tmp_path: Path, size: tuple[int, int], dark: bool
) -> None:
    with opened(browser, sweep, size, dark=dark) as shown:
        charts = shown.draw_all()
        lines = shown.page.locator("figure.lines:visible").count()
        # Throughput and the 99th percentile over clients, for two benchmarks, and distributions.
        assert (lines, charts - lines) == (4 + 2 * len(CLIENTS), 1)
        assert shown.page.locator("[data-chart]:visible svg").count() == charts
        width = shown.page.evaluate("document.documentElement.scrollWidth")
        assert width <= size[0]
        picture = shown.page.screenshot(path=tmp_path / "page.png", full_page=True)
        assert picture.startswith(b"\x89PNG")
        assert shown.console == []
        assert shown.requests == [sweep.as_uri()]
    assert sweep.stat().st_size < MAX_BYTES


@pytest.fixture(scope="module")
def small(page_of: Callable[..., Path]) -> Path:
    """A page with one of each kind of table and chart: axe takes minutes for thousands of cells."""
    return page_of(
        [
            result
            for result in SWEPT
            if result.cell.benchmark != "cold" and result.cell.parameters.crew.size <= 2
        ]
    )


@in_light_and_dark
def test_a_page_has_no_accessibility_violations(
    browser: Browser, small: Path, size: tuple[int, int], dark: bool
) -> None:
    from axe_core_python.sync_playwright import Axe

    with opened(browser, small, size, dark=dark) as shown:
        assert shown.draw_all() > 0
        report = Axe().run(shown.page)
    violations = [
        (violation["id"], [node["html"][:200] for node in violation["nodes"]])
        for violation in report["violations"]
    ]
    assert violations == []


def test_a_contender_can_be_filtered_out_and_back_in_with_the_keyboard(
    browser: Browser, sweep: Path
) -> None:
    with opened(browser, sweep) as shown:
        shown.draw_all()
        page = shown.page
        lines = page.locator("figure.lines").first.locator(".mark-line path")
        assert lines.count() == 3
        page.locator("h1").click()
        for _ in range(20):
            page.keyboard.press("Tab")
            focused = page.evaluate("document.activeElement.value")
            if focused == "zeo":
                break
        page.keyboard.press("Space")
        page.wait_for_function(
            "document.querySelector('figure.lines').querySelectorAll('.mark-line path').length"
            " === 2"
        )
        heads = (
            page.locator("#results")
            .locator("xpath=../..")
            .locator("thead")
            .first.locator("th:visible")
        )
        assert [head.strip() for head in heads.all_text_contents()] == ["Benchmark", "fs", "pg"]
        compared = page.locator("details[data-sides*=fs]:visible > summary")
        (left,) = compared.all_text_contents()
        assert left == "pg and fs"
        page.keyboard.press("Space")
        page.wait_for_function(
            "document.querySelector('figure.lines').querySelectorAll('.mark-line path').length"
            " === 3"
        )
        assert heads.count() == 4
        assert compared.count() == 2


def test_a_point_shows_its_figure_and_a_chart_can_be_saved(browser: Browser, sweep: Path) -> None:
    with opened(browser, sweep, dark=True) as shown:
        shown.draw_all()
        figure = shown.page.locator("figure.lines").first
        figure.scroll_into_view_if_needed()
        figure.locator(".mark-symbol path").first.hover(force=True)
        shown.page.locator("#vg-tooltip-element").wait_for()
        tooltip = shown.page.locator("#vg-tooltip-element").inner_text()
        assert "contender" in tooltip
        assert "±" in tooltip
        for kind, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
            with shown.page.expect_download() as download:
                figure.get_by_role("button", name=f"as {kind}").click()
            assert Path(download.value.path()).read_bytes().startswith(start)
            if kind == "SVG":
                saved = Path(download.value.path()).read_text(encoding="utf-8")
        assert shown.console == []
    # A saved chart has its title, its unit and the processor, on a white background.
    for text in (
        "Add 100 Objects",
        "objects per second (more is better)",
        "a processor",
        "#ffffff",
    ):
        assert text in saved


NOISE = (0.01, 0.05, 0.4, 1.5)
"""Standard deviations that result in intervals from 1 % to 400 % wide."""


def many() -> list[CellResult]:
    """Return all benchmarks of eight contenders, some unsupported, some with too few runs."""
    names = ("filestorage", "zeo", "sqlite", "memory", "postgresql_history_free", "mysql", "x.y.z",
             "a_contender_with_a_long_name")  # fmt: skip
    results = []
    for number, name in enumerate(names):
        for row, benchmark in enumerate(benchmarks()):
            if (number + row) % 13 == 5:
                results.append(unsupported(cell(benchmark, name), "it makes no sense"))
                continue
            runs = noisy(
                99 * number + row, 0.01 * (number + 1), runs=2 + bool((number + row) % 7),
                noise=NOISE[(number + row) % 4],
            )  # fmt: skip
            storage = {"storage_classes": "relstorage.storage.RelStorage"}
            results.append(measured(cell(benchmark, name), *runs, precision=0.05, **storage))
    return results


CLIPPED = """() => {
    const texts = 'td, th, p, li, summary, label, figcaption, pre';
    return [...document.querySelectorAll(texts)].filter((box) => {
        if (!box.offsetParent || box.closest('thead, .hidden')) return false;
        const { left, right } = box.getBoundingClientRect();
        const scrolled = box.closest('.scrolled');
        const is_reached = scrolled && scrolled.scrollWidth > scrolled.clientWidth;
        const { overflowX, display } = getComputedStyle(box);
        const is_cut = overflowX === 'visible' && display !== 'inline'
            && box.scrollWidth > box.clientWidth + 1;
        return left < -1 && !is_reached || right > innerWidth + 1 && !is_reached || is_cut;
    }).map((box) => box.textContent.slice(0, 60));
}"""
"""JavaScript that returns texts that overflow their boxes, or a window that cannot scroll."""


@pytest.fixture(scope="module")
def wide(page_of: Callable[..., Path]) -> Path:
    return page_of(many())


@pytest.mark.parametrize(
    ("width", "medium"),
    [(400, "light"), (800, "dark"), (1400, "light"), *((width, "print") for width in (400, 1400))],
)
def test_nothing_is_clipped_or_wider_than_the_window(
    browser: Browser, wide: Path, width: int, medium: str
) -> None:
    with opened(browser, wide, (width, 900), dark=medium == "dark") as shown:
        page = shown.page
        page.evaluate("document.querySelectorAll('details').forEach((p) => { p.open = true })")
        page.locator("[data-chart]").first.scroll_into_view_if_needed()
        page.locator("[data-drawn]").first.wait_for()
        if medium == "print":
            page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(CLIPPED) == []
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(22, 24, 27)") == (medium == "dark")
        # The labels of charts come from the page.
        labels = page.locator("figure [role=img]").evaluate_all(
            "(places) => places.map((place) => place.getAttribute('aria-label'))"
        )
        counted = {benchmark.counted for benchmark in benchmarks().values()}
        assert all(any(noun in label for noun in counted) for label in labels)
        assert (
            page.locator("figure [role=graphics-document]").count()
            == page.locator("figure [role=img] [role=graphics-document]").count()
        )
        assert shown.console == []


def test_the_filter_stays_visible_and_the_matrix_can_be_sorted(
    browser: Browser, wide: Path
) -> None:
    with opened(browser, wide) as shown:
        page = shown.page
        page.evaluate("scrollTo(0, document.body.scrollHeight / 2)")
        assert page.locator("#filter").bounding_box()["y"] == 0
        values = "[data-baseline=filestorage] .matrix tbody td:nth-child(3)"
        read = (
            f"[...document.querySelectorAll('{values}')].map((c) => Number(c.dataset.value || 0))"
        )
        before = page.evaluate(read)
        page.locator(".matrix thead button").nth(2).click()
        assert page.evaluate(read) == sorted(before, reverse=True)
        page.locator(".matrix thead button").nth(2).click()
        assert page.evaluate(read) == sorted(before)
        page.locator(".matrix thead button").first.click()
        assert page.evaluate(read) == before


def test_the_selected_percentile_applies_to_tables_and_charts(
    browser: Browser, sweep: Path
) -> None:
    with opened(browser, sweep) as shown:
        shown.draw_all()
        page = shown.page
        visible = page.locator("[data-percentile]:visible")
        names = "(places) => [...new Set(places.map((place) => place.dataset.percentile))]"
        assert visible.evaluate_all(names) == ["p99"]
        number = visible.count()
        page.locator("#percentile").select_option("max")
        assert visible.evaluate_all(names) == ["max"]
        assert visible.count() == number
        shown.draw_all()
        assert shown.console == []


def test_a_row_of_the_matrix_links_to_the_charts_of_its_benchmark(
    browser: Browser, wide: Path
) -> None:
    with opened(browser, wide) as shown:
        charts = shown.page.locator("#part-prefetch_cold figure")
        assert not charts.first.is_visible()
        shown.page.locator(".matrix").get_by_role("link", name="prefetch_cold").click()
        charts.first.locator("svg").wait_for()


COMPARED = """() => {
    const shown = (selector) => [...document.querySelectorAll(selector)]
        .filter((box) => box.checkVisibility()).map((box) => box.textContent);
    document.querySelectorAll('details').forEach((fold) => { fold.open = true; });
    return [
        shown('.verdict'), shown('section:has(.matrix) h2'), shown('.matrix tr'),
        shown('[aria-labelledby=results] tr'), shown('[aria-labelledby=results] .notes li').sort(),
        shown('details[data-sides] > summary'), shown('details[data-sides] tr'),
    ];
}"""
"""JavaScript that returns the visible texts which depend on the baseline."""


def test_a_contender_that_is_made_the_baseline_is_compared_as_by_the_command(
    browser: Browser, page_of: Callable[..., Path]
) -> None:
    names = ("fs", "zeo", "pg")
    results = [
        *(measured(
              cell(benchmark, name), *noisy(9 * at + row, 1 + at / 4, noise=0.1), precision=0.1)
          for at, name in enumerate(names)
          for row, benchmark in enumerate(("add", "cold", "hot"))),
        unsupported(cell("prefetch_cold", "fs"), "it has no prefetch"),
        *(measured(cell("prefetch_cold", name), *noisy(at)) for at, name in enumerate(names[1:])),
        failed(cell("load", "zeo"), "no more room"),
        measured(cell("load", "pg"), [1.0]),
        measured(cell("load", "fs"), *noisy(5)),
    ]  # fmt: skip
    expected = []
    for name in names:
        with opened(browser, page_of(results, baseline=name)) as shown:
            expected.append(shown.page.evaluate(COMPARED))
    assert len({str(texts) for texts in expected}) == 3
    with opened(browser, page_of(results)) as shown:
        choice = shown.page.get_by_label("Baseline")
        for name in ("pg", "fs", "zeo"):
            choice.select_option(name)
            assert shown.page.evaluate(COMPARED) == expected[names.index(name)]
        shown.page.get_by_role("checkbox", name="pg").uncheck()
        matrix = shown.page.locator(".matrix:visible")
        assert matrix.locator("thead th:visible").all_inner_texts() == ["Benchmark", "fs"]
        assert shown.console == []


def test_whatever_has_no_figure_leads_to_the_reason(
    browser: Browser, page_of: Callable[..., Path]
) -> None:
    slow = at_a_rate("zeo", 120, part_of_schedule=0.5)
    gone = failed(cell("add", "gone"), "no more room")
    results = [*many()[:40], gone, slow, at_a_rate("filestorage", 120)]
    with opened(browser, page_of(results)) as shown:
        page = shown.page
        page.evaluate("document.querySelectorAll('details').forEach((p) => { p.open = true })")
        ids = page.locator("[id]").evaluate_all("(all) => all.map((one) => one.id)")
        assert len(set(ids)) == len(ids)
        without = page.locator("main td.number:visible").filter(
            has_text=re.compile(r"^\s*(-|n/a|failed|cannot keep up)(?!\d)")
        )
        words = {text.split(" [")[0] for text in without.all_inner_texts()}
        assert words == {"-", "n/a", "failed", "cannot keep up"}
        links = without.locator("a")
        assert links.count() == without.count()
        targets = set(links.evaluate_all("(all) => all.map((one) => one.hash)"))
        assert "#no-figure" in targets
        assert len(targets) == 4
        for target in targets:
            assert page.locator(target).count() == 1
            number = target.removeprefix("#note-") if "note" in target else ""
            text = page.locator(target).inner_text()
            assert text.startswith(f"[{number}] " if number else "dash (-): not recorded")
        page.evaluate("document.querySelectorAll('details').forEach((p) => { p.open = false })")
        page.goto(f"{page.url}{min(targets)}")
        assert page.locator(min(targets)).is_visible()


def test_what_hardly_matters_of_the_differences_is_folded(
    browser: Browser, page_of: Callable[..., Path]
) -> None:
    results = [
        measured(cell("add", name), *noisy(1), settings=json.dumps(dict.fromkeys("abcdefg", name)))
        for name in ("fs", "zeo")
    ]
    with opened(browser, page_of(results)) as shown:
        shown.page.locator(".part > summary", has_text="Which is faster").click()
        shown.page.locator("[data-sides*=zeo]:visible > summary").click()
        assert shown.page.get_by_text("d: fs against zeo").is_visible()
        folded = shown.page.get_by_text("e: fs against zeo").first
        assert not folded.is_visible()
        shown.page.locator("summary:visible", has_text="Other differences (3)").click()
        assert folded.is_visible()


def test_a_page_can_be_read_without_scripts(browser: Browser, wide: Path) -> None:
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(wide.as_uri())
    assert page.locator(".verdict:visible").count() == 2
    assert page.locator(".matrix:visible").count() == 1
    assert page.locator(".matrix td:visible").count() > 100
    assert not page.locator("#filter").is_visible()  # nothing there would do anything
    assert (
        "Charts and other baselines need JavaScript" in page.locator("noscript").first.inner_text()
    )
    context.close()


def test_scripts_in_names_and_reasons_are_shown_and_not_run(
    browser: Browser, page_of: Callable[..., Path]
) -> None:
    results = [
        *swept(names=(HOSTILE, "b")),
        failed(replace(SWEPT[0].cell, contender="c"), f"it said {HOSTILE}"),
    ]
    with opened(
        browser, page_of(results, [with_worker_metadata(result) for result in EVERYTHING])
    ) as shown:
        shown.draw_all()
        text = shown.page.locator("main").inner_text()
        assert f"it said {HOSTILE}" in text
        assert f"a: {HOSTILE}" in text
        labels = shown.page.locator("#filter label").all_text_contents()
        assert labels[0] == f"a: {HOSTILE}"
        assert shown.page.title() == "a.json and b.json"
        assert shown.page.locator("main script").count() == 0
        assert shown.console == []


def test_charts_draw_the_measured_rates(browser: Browser, sweep: Path) -> None:
    with opened(browser, sweep) as shown:
        charts = json.loads(shown.page.locator("#charts").text_content() or "")
    rows = charts[0]["data"]["values"]
    drawn = {(row["column"], row["x"]): row["y"] for row in rows}
    for result in swept():
        key = (result.cell.contender, result.cell.parameters.crew.size)
        assert drawn[key] == pytest.approx(Figure(result, THROUGHPUT).value, rel=1e-4)


def test_bars_without_intervals_log_no_messages(
    browser: Browser, page_of: Callable[..., Path]
) -> None:
    straight = [result for result in swept() if result.cell.contender == "pg"]
    once = [replace(result, runs=result.runs[:1]) for result in swept("cold")]
    with opened(browser, page_of([*straight, *once])) as shown:
        assert shown.draw_all() > 0
        assert shown.console == []
