"""The charts of a history."""

from __future__ import annotations

import json

from benchmarks.histories import Simulated

from zodbshootout.reports.drawing import draw
from zodbshootout.reports.history_report import TO_ANCHOR, history_report
from zodbshootout.reports.html import figures_of


def test_each_series_has_a_line_of_its_own() -> None:
    history = Simulated("series")
    for code in "aab":
        history.add(code=code)
    chart, *_ = history_report([history.history], page=True).charts
    assert [point.line for point in chart.points if point.column == TO_ANCHOR] == [0, 0, 1]
    detail = json.dumps({"detail": {"field": "line", "type": "nominal"}}).strip("{}")
    assert json.dumps(draw(chart).to_dict()).count(detail) == 2  # the line and its interval
    assert figures_of(chart).title == "Speed"
