from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from zodbshootout.servers import ServerFailed
from zodbshootout.servers.installation import NOBODY, Account, account_for

MYSELF = Account("myself", os.getuid(), -1)


@pytest.fixture
def _root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)


@pytest.fixture
def _ordinary(monkeypatch: pytest.MonkeyPatch) -> None:
    uid = pwd.getpwnam(NOBODY).pw_uid
    monkeypatch.setattr("os.geteuid", lambda: uid)


@pytest.mark.usefixtures("_ordinary")
def test_an_ordinary_user_runs_servers_as_itself() -> None:
    assert account_for([NOBODY], None, None) is None
    assert account_for([NOBODY], NOBODY, None) is None
    with pytest.raises(ServerFailed, match="cannot run as root: only root can"):
        account_for([NOBODY], "root", None)


@pytest.mark.usefixtures("_root")
def test_root_runs_servers_as_the_first_usual_user_that_exists() -> None:
    account = account_for(["no-such-user", NOBODY, "root"], None, None)
    assert account is not None
    assert account == Account(NOBODY, pwd.getpwnam(NOBODY).pw_uid, pwd.getpwnam(NOBODY).pw_gid)
    assert account_for(["no-such-user"], None, None) is None


@pytest.mark.usefixtures("_root")
def test_root_runs_servers_as_the_user_named_in_the_section() -> None:
    account = account_for(["root"], NOBODY, None)
    assert account is not None
    assert account.name == NOBODY
    with pytest.raises(ServerFailed, match="there is no such user; see the server's run-as key"):
        account_for([NOBODY], "no-such-user", None)


@pytest.mark.usefixtures("_root")
def test_root_runs_a_server_as_the_owner_of_its_kept_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    someone = pwd.getpwall()[1]
    assert someone.pw_uid

    def stat(path: Path) -> os.stat_result:
        return os.stat_result([0o40700, 0, 0, 0, someone.pw_uid, someone.pw_gid, 0, 0, 0, 0])

    missing = account_for([NOBODY], None, tmp_path / "not-yet")
    assert missing is not None
    assert missing.name == NOBODY
    with monkeypatch.context() as patched:
        patched.setattr(Path, "stat", stat)
        patched.setattr(Path, "exists", lambda _: True)
        owner = account_for([NOBODY], None, tmp_path)
    assert owner == Account(f"number {someone.pw_uid}", someone.pw_uid, someone.pw_gid)


def test_an_account_names_the_first_directory_on_a_path_it_may_not_enter(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    directory = closed / "closed too" / "open"
    directory.mkdir(parents=True)
    assert MYSELF.first_not_enterable(directory) is None
    directory.parent.chmod(0o677)
    assert MYSELF.first_not_enterable(directory) == directory.parent
    closed.chmod(0o677)
    assert MYSELF.first_not_enterable(directory) == closed
    closed.chmod(0o700)
    directory.parent.chmod(0o700)


def test_each_class_of_mode_bits_applies_only_to_its_own_accounts(
    tmp_path: Path,
) -> None:
    status = tmp_path.stat()
    owner = Account("owner", status.st_uid, -1)
    fellow = Account("fellow", -1, status.st_gid)
    other = Account("other", -1, -1)
    letters = {0o100: owner, 0o010: fellow, 0o001: other}
    for mode, account in letters.items():
        tmp_path.chmod(mode)
        assert account._may_enter(tmp_path)
        assert not any(
            another._may_enter(tmp_path) for another in letters.values() if another is not account
        )
    tmp_path.chmod(0o700)
