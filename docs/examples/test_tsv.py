import io

import shootout_tsv
from rich.console import Console

from zodbshootout.api.formats import Entry, Note, Report, Row, Table


def test_columns_are_separated_by_tabs() -> None:
    table = Table("Speed", ["memory", "acme"], [Row("Add", [Entry("20"), Entry("10")])])
    stream = io.StringIO()
    shootout_tsv.write(Report([table], [Note("a note")]), Console(file=stream))
    assert stream.getvalue() == "# Speed\nBenchmark\tmemory\tacme\nAdd\t20\t10\n# a note\n"
