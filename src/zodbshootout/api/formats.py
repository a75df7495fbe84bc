"""The names that a report format needs: a report and its parts."""

from zodbshootout.reports.elements import (
    Entry,
    Listing,
    Report,
    Row,
    Style,
    Table,
)

__all__ = ["Entry", "Listing", "Report", "Row", "Style", "Table"]
