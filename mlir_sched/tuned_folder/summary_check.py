"""The check of a ``summary.json``, which anybody may have edited, for fields of wrong types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlir_sched.errors import UserError

_KINDS: Mapping[tuple[str, ...], type | tuple[type, ...]] = {
    ("target",): str,
    ("threads",): int,
    ("parameters",): list,
    ("flags",): list,
    ("dispatches",): list,
    ("program",): dict,
    ("program", "decisions"): dict,
    ("program", "gained"): bool,
    ("program", "device"): str,
    ("program", "tuned"): dict,
    ("program", "tuned", "ratio"): (int, float),
}
"""The fields that are read, each with the type it must have when it is present."""


def require_usable_fields(summary: Mapping[str, Any]) -> None:
    """Refuse a summary with a field of another type than ``tune`` writes; fields may be missing.

    Raises:
        UserError: The summary has such a field.
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
