"""The commits between a good and a bad commit; git chooses which one to measure next.

``git bisect`` runs in a bare clone that shares the checkout's objects, so that nothing is ever
written to the checkout.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from zodbshootout.contenders.releases import commit_of
from zodbshootout.errors import UserError
from zodbshootout.versions import git

_BAD, _GOODS, _SKIPPED = "refs/bisect/bad", "--glob=refs/bisect/good-*", "--glob=refs/bisect/skip-*"
_NEXT = "BISECT_HEAD"


@dataclass(frozen=True)
class Suspects:
    """The commits after a good commit, up to a bad commit."""

    clone: Path
    good: str
    bad: str

    @classmethod
    def of(cls, checkout: Path, good: str, bad: str, directory: Path) -> Suspects:
        """Clone a *checkout* into *directory*; return the commits between *good* and *bad*.

        :raises UserError: if there is no git checkout, or no commit after *good* up to *bad*
        """
        top, clone = git(checkout, "rev-parse", "--show-toplevel"), directory / "clone"
        copied = ["clone", "--quiet", "--bare", "--shared", "--", top or "", str(clone)]
        if not top or git(directory, *copied) is None:
            raise UserError(f"--checkout: {checkout} is not a git checkout")
        suspects = cls(clone, good, bad)
        if git(clone, "bisect", "start", "--no-checkout", bad, good) is None:
            raise UserError(f"--good: there is no commit after {good[:12]} up to {bad[:12]}")
        return suspects

    def mark(self, finding: str, commit: str) -> None:
        """Tell git the finding about a *commit*: ``good``, ``bad`` or ``skip``.

        :raises UserError: if no suspect is left, because *commit* is bad but precedes a good commit
        """
        git(self.clone, "bisect", finding, commit)  # git fails if only skipped commits are left
        if not self.left:
            raise UserError(
                f"{commit[:12]}, an ancestor of both {self.good[:12]} and {self.bad[:12]}, is "
                "already bad; name a good commit before it"
            )

    @property
    def left(self) -> list[str]:
        """The commits that may be the first bad one, newest first, including skipped ones."""
        return self._listed(_BAD, "--not", _GOODS)

    @property
    def next(self) -> str:
        """The commit to measure next; empty if all commits in :attr:`left` are skipped or bad."""
        untested = {*self.left} - {*self._listed("--no-walk", _SKIPPED)}
        bad = (git(self.clone, "rev-parse", _BAD) or "").strip()
        return (git(self.clone, "rev-parse", _NEXT) or "") if untested - {bad} else ""

    def subject(self, commit: str) -> str:
        """Return the abbreviated hash of a commit and its subject line."""
        return git(self.clone, "log", "--no-walk", "--format=%h %s", commit) or commit

    def _listed(self, *words: str) -> list[str]:
        return (git(self.clone, "rev-list", *words) or "").split()


def good_commit(checkout: Path, name: str) -> str:
    """Return the commit of a ``--good`` revision; ``4.2`` may also stand for the tag ``v4.2``.

    :raises UserError: if there is no such commit
    """
    try:
        return commit_of(checkout, name, "--good")
    except UserError as error:
        try:
            return commit_of(checkout, f"v{name}", "--good")
        except UserError:
            raise error from None
