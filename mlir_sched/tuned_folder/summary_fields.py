"""The check of a ``summary.json``, which anybody may have edited: does it have what is read from it?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlir_sched.errors import UserError

_KINDS: Mapping[tuple[str, ...], type | tuple[type, ...]] = {
    ("target",): str,
    ("threads",): int,
    ("parameters",): list,
    ("dispatches",): list,
    ("program",): dict,
    ("program", "gained"): bool,
    ("program", "device"): str,
    ("program", "tuned"): dict,
    ("program", "tuned", "ratio"): (int, float),
}
"""The fields that are read, each with what it has to be where it is there."""


def require_usable_fields(summary: Mapping[str, Any]) -> None:
    """Refuse a summary with a field that is not of the kind that ``tune`` writes; fields may be missing.

    Raises:
        UserError: There is one.
    """
    for path, kind in _KINDS.items():
        value: Any = summary
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is not None and not isinstance(value, kind):
            raise _damaged(path, value)
    for text in summary.get("parameters") or ():
        if not isinstance(text, str):
            raise _damaged(("parameters",), text)


def _damaged(path: tuple[str, ...], value: object) -> UserError:
    return UserError(f"summary.json is damaged: {'.'.join(path)} is {value!r}; restore it, or remove it")
