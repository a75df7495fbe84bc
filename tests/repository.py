"""Facts from the files of the repository that are outside the package."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
CONTAINER = ROOT / "docs" / "examples" / "container" / "Dockerfile"


def project() -> Any:
    """Return the table ``project`` of ``pyproject.toml``."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def container_steps() -> list[tuple[str, str]]:
    """Return the instructions of the container file with their arguments, in order."""
    lines = CONTAINER.read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if line and not line.startswith("#"))
    joined = re.sub(r"\s*\\\n\s*", " ", text)
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.split("\n"))]
