from __future__ import annotations

import sys

import platformdirs
import pytest

from zodbshootout.cli.destination import result_files
from zodbshootout.cli.options import parse
from zodbshootout.client.specification import CrewShape, Parameters
from zodbshootout.errors import UserError
from zodbshootout.scheduling.calibration import Effort
from zodbshootout.scheduling.plan import Sweep, make_plan

PLAN = make_plan([], [], Sweep([1], [10], [300], Parameters(CrewShape(1))), Effort(1, 1, 0, 1, 0.1))


def test_a_user_without_a_home_directory_has_to_name_a_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def user_data_dir(*_: object, **__: object) -> str:
        raise RuntimeError("could not determine the home directory")

    monkeypatch.setattr(platformdirs, "user_data_dir", user_data_dir)
    with pytest.raises(UserError) as caught:
        result_files(parse([]), PLAN)
    assert str(caught.value) == (
        "results cannot be written: could not determine the home directory; name a file with -o"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_where_no_file_can_be_made_is_told_before_anything_is_measured() -> None:
    with pytest.raises(UserError, match="results cannot be written to /proc: "):
        result_files(parse(["-o", "/proc/a.json"]), PLAN)
