"""The examples of docs/extending.md."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

from folders import ROOT

_PAGE = ROOT / "docs" / "extending.md"


def examples() -> SimpleNamespace:
    """Return what the Python blocks of the page define, one after the other."""
    names: dict[str, Any] = {"__name__": __name__}
    for block in re.findall(r"```python\n(.*?)```", _PAGE.read_text(), flags=re.DOTALL):
        exec(compile(block, str(_PAGE), "exec"), names)
    return SimpleNamespace(**names)


EXAMPLES = examples()
