"""The environment that workers get from the command."""

from __future__ import annotations

import os
import sys

import pytest

from zodbshootout.workers.variables import default_affinity, worker_environment

ENVIRONMENT = {
    "PATH": "/bin",
    "PYTHONHASHSEED": "0",
    "PGPASSWORD": "x",
    "MYSQL_PWD": "x",
    "LC_ALL": "C",
    "LANG": "C",
    "EDITOR": "ed",
    "MINE": "1",
}


def names(*inherit: str, locale: bool = True, copy_all: bool = False) -> set[str]:
    return set(worker_environment(ENVIRONMENT, inherit, locale=locale, copy_all=copy_all))


def test_trap_18_workers_inherit_the_variables_that_storages_need() -> None:
    assert names() == {"PATH", "PYTHONHASHSEED", "PGPASSWORD", "MYSQL_PWD", "LC_ALL", "LANG"}


def test_variables_are_inherited_by_name_or_all_and_the_locale_is_optional() -> None:
    assert names("MINE") - names() == {"MINE"}
    assert names(copy_all=True) == set(ENVIRONMENT)
    assert names() - names(locale=False) == {"LC_ALL", "LANG"}


@pytest.mark.skipif(sys.platform != "linux", reason="affinity is Linux's")
def test_trap_17_workers_may_use_every_cpu_that_the_run_may_use() -> None:
    affinity = default_affinity()
    assert affinity is not None
    assert {int(cpu) for cpu in affinity.split(",")} == os.sched_getaffinity(0)
