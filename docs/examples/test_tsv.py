import io

from rich.console import Console

from zodbshootout.reports import format_named
from zodbshootout.reports.elements import Entry, Report, Row, Table


def test_columns_are_separated_by_tabs() -> None:
    table = Table("Speed", ["memory", "acme"], [Row("Add", [Entry("20"), Entry("10")])])
    stream = io.StringIO()
    format_named("tsv")(Report([table], ["a note"]), Console(file=stream))
    assert stream.getvalue() == "# Speed\nBenchmark\tmemory\tacme\nAdd\t20\t10\n# a note\n"
