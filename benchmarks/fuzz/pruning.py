"""What a draft does not need for its results, left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from benchmarks.fuzz.draft import Draft, Value

_DEFINED = re.compile(r"  %(\w+)(?::\d+)? = ")
_USED = re.compile(r"%(\w+)")
D = TypeVar("D", bound=Draft)


def operations(lines: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the operations of a body: the name of what each defines, and its lines, those of its region included."""
    found = list[tuple[str, list[str]]]()
    for line in lines:
        if defined := _DEFINED.match(line):
            found.append((defined[1], []))
        found[-1][1].append(line)
    return found


def pruned(draft: D, outputs: Sequence[Value]) -> D:
    """Return a draft with the operations and arguments that some of its values are computed from."""
    needed, kept = {value.name for value in outputs}, list[list[str]]()
    for name, lines in reversed(operations(draft.lines)):
        if name in needed:
            needed.update(used for line in lines for used in _USED.findall(line))
            kept.append(lines)
    return replace(
        draft,
        inputs=[value for value in draft.inputs if value.name in needed],
        lines=[line for lines in reversed(kept) for line in lines],
        steps=[step for step in draft.steps if step.value.name in needed],
        arrays={name: array for name, array in draft.arrays.items() if name in needed},
    )
