"""The names that a report format needs: a report and its parts."""

from zodbshootout.reports.elements import (
    Entry,
    Listing,
    Note,
    Report,
    Row,
    Style,
    Table,
)

__all__ = ["Entry", "Listing", "Note", "Report", "Row", "Style", "Table"]
