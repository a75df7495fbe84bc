"""An application whose commits are recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import transaction
from ZODB import DB


def commit_twice(db: DB, change: Callable[[Any], None]) -> None:
    """Change the same object in overlapping transactions of two connections."""
    managers = [transaction.TransactionManager() for _ in range(2)]
    roots = [db.open(manager).root() for manager in managers]
    for root in roots:
        change(root)
    try:
        for manager in managers:
            manager.commit()
    finally:
        for manager, root in zip(managers, roots, strict=True):
            manager.abort()
            root._p_jar.close()
