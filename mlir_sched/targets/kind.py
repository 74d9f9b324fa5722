"""The interface of a kind of target."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mlir_sched.errors import UserError
from mlir_sched.processes.limits import ChildError
from mlir_sched.processes.workers import run_isolated
from mlir_sched.targets.target import Target

DEFAULT = "default"
"""Name of the variant without flags: what ``iree-compile`` does by itself."""


@dataclass(frozen=True)
class TargetKind:
    """A target by name.

    Attributes:
        detect: Describes this machine as the target, for programs that may use so many threads of it. Raises a
            UserError that says what is missing when there is no such device, or the number of threads is impossible.
        variants: Compiler flags that compete with scripts, by the name of the variant, :data:`DEFAULT` first.
        facts: What a user should know of a detected target, as (name, value).
        rewrites: Whether rewrites of the whole program (``program/rewrites``) compete too.
    """

    detect: Callable[[int], Target]
    variants: Mapping[str, tuple[str, ...]]
    facts: Callable[[Target], tuple[tuple[str, str], ...]]
    rewrites: bool = False


def resolve(name: str, flags: tuple[str, ...]) -> str:
    """Return IREE's ``#hal.executable.target`` for some flags.

    Raises:
        UserError: IREE cannot resolve it.
    """
    try:
        resolved: str = run_isolated(flags, "mlir_sched.compiler.worker.resolved_target:resolved_target")
    except ChildError as error:
        raise UserError(f"IREE cannot resolve the target {name}: {error}") from None
    return resolved


def integer(resolved: str, key: str) -> int:
    """Return a number of a resolved executable target.

    Raises:
        UserError: It is not there.
    """
    found = re.search(rf"\b{key} = (\d+)", resolved)
    if found is None:
        raise UserError(f"IREE's target description does not tell {key}: {resolved}")
    return int(found.group(1))
