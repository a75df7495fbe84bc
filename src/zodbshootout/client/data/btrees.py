"""BTrees with node sizes other than the defaults.

``IOBTree_120_1000`` is an ``IOBTree``: a leaf holds up to 120 keys, an inner node up to 1000
children.  This module creates such a class when its name is looked up.  Stored records contain the
name, so any process that loads such a record finds the class.
"""

from __future__ import annotations

import re
from typing import Any

from BTrees.IOBTree import IOBTree
from BTrees.OOBTree import OOBTree

_BASES = {"IOBTree": IOBTree, "OOBTree": OOBTree}
_NAME = re.compile(r"(?P<base>IOBTree|OOBTree)_(?P<leaf>[1-9]\d*)_(?P<internal>[1-9]\d*)")


def btree_class(base: str, leaf_size: int, internal_size: int) -> Any:
    """Return a class of BTrees with nodes of these sizes; 0 stands for the size in *base*."""
    cls = _BASES[base]
    if not leaf_size and not internal_size:
        return cls
    leaf_size = leaf_size or cls.max_leaf_size
    internal_size = internal_size or cls.max_internal_size
    return __getattr__(f"{base}_{leaf_size}_{internal_size}")


def __getattr__(name: str) -> Any:
    match = _NAME.fullmatch(name)
    if match is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    sizes = {"max_leaf_size": int(match["leaf"]), "max_internal_size": int(match["internal"])}
    cls = type(name, (_BASES[match["base"]],), {**sizes, "__module__": __name__})
    return globals().setdefault(name, cls)
