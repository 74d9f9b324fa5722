"""Constraints for pip with the lowest versions that ``pyproject.toml`` allows, one a line.

Usage: ``python lowest_versions.py > constraints.txt``
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from folders import ROOT

_AT_LEAST = re.compile(r"(?P<name>[\w.-]+)(\[[^]]*\])?\s*>=\s*(?P<version>[\d.]+)(,\s*<[\d.]+)?\s*(;\s*(?P<where>.+))?")


def lowest_versions(project: dict[str, Any]) -> Iterator[str]:
    """Yield a constraint for each dependency with a lower bound, with the marker of its platform.

    Args:
        project: The table ``project`` of a ``pyproject.toml``.
    """
    extras = project["optional-dependencies"].values()
    for requirement in [*project["dependencies"], *(one for extra in extras for one in extra)]:
        if found := _AT_LEAST.fullmatch(requirement):
            yield f"{found['name']}=={found['version']}" + (f"; {found['where']}" if found["where"] else "")


if __name__ == "__main__":
    print("\n".join(lowest_versions(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"])))
