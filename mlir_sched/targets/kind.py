"""What a target must say of itself to be tuned for."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from mlir_sched.compiler.workers import WorkerCrashError, WorkerTimeoutError, run_isolated
from mlir_sched.errors import UserError
from mlir_sched.rewrite_script import RewriteScript
from mlir_sched.target import Target


@dataclass(frozen=True)
class Variant:
    """A way to compile a program, by a name; a target's first one is what ``iree-compile`` does by itself.

    Attributes:
        name: Unique among the variants of a program.
        flags: Compiler flags.
        rewrite: What happens to the program before dispatches are formed; None for nothing.
        local_sync: Whether the program runs in the thread that calls (IREE's ``local-sync``) also in a run on several
            threads: waking IREE's workers may take longer than they save a short program.
    """

    name: str
    flags: tuple[str, ...]
    rewrite: RewriteScript | None = None
    local_sync: bool = False

    def threads(self, threads: int) -> int:
        """Return the threads that the program runs on, given those of the run."""
        return 1 if self.local_sync else threads


DEFAULT = Variant("default", ())


@dataclass(frozen=True)
class TargetKind:
    """A target by name.

    Attributes:
        detect: Describes this machine as the target, for programs that may use so many threads of it. Raises a
            UserError that says what is missing when there is no such device, or the number of threads is impossible.
        variants: Compiler flags that compete with scripts, the default first.
        facts: What a user should know of a detected target, as (name, value).
        rewrites: Whether rewrites of the whole program (``program_rewrites``) compete too.
    """

    detect: Callable[[int], Target]
    variants: tuple[Variant, ...]
    facts: Callable[[Target], tuple[tuple[str, str], ...]]
    rewrites: bool = False


def resolve(name: str, flags: tuple[str, ...]) -> str:
    """Return IREE's ``#hal.executable.target`` for some flags.

    Raises:
        UserError: IREE cannot resolve it.
    """
    try:
        resolved: str = run_isolated(flags, "mlir_sched.compiler.resolved_target:resolved_target")
    except (WorkerCrashError, WorkerTimeoutError) as error:
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
