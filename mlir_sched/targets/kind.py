"""The interface of a kind of target."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mlir_sched.compiler.worker_process import run_isolated
from mlir_sched.errors import UserError
from mlir_sched.processes.limits import ChildError
from mlir_sched.targets.target import Target

DEFAULT = "default"
"""Name of the variant without flags: the default code of ``iree-compile``."""


@dataclass(frozen=True)
class TargetKind:
    """What a named target provides.

    Attributes:
        detect: Describes this machine as the target, for programs that may use the given number of threads. Raises a
            UserError when the machine has no such device (the message says what is missing) or the number of threads
            is impossible.
        variants: Compiler flags that compete with scripts, by the name of the variant, :data:`DEFAULT` first.
        facts: Properties of a detected target that a user should know, as (name, value).
        rewrites: Whether rewrites of the whole program (``program/rewrites``) compete too.
    """

    detect: Callable[[int], Target]
    variants: Mapping[str, tuple[str, ...]]
    facts: Callable[[Target], tuple[tuple[str, str], ...]]
    rewrites: bool = False


def resolve(name: str, flags: tuple[str, ...]) -> str:
    """Return IREE's ``#hal.executable.target`` for a target's flags.

    Raises:
        UserError: IREE cannot resolve the target.
    """
    try:
        resolved: str = run_isolated(flags, "mlir_sched.compiler.worker.resolved_target:resolved_target")
    except ChildError as error:
        raise UserError(f"IREE cannot resolve the target {name}: {error}") from None
    return resolved


def integer(resolved: str, key: str) -> int:
    """Return the number that a resolved executable target has for a key.

    Raises:
        UserError: The target does not have the key.
    """
    found = re.search(rf"\b{key} = (\d+)", resolved)
    if found is None:
        raise UserError(f"IREE's target description does not tell {key}: {resolved}")
    return int(found.group(1))
