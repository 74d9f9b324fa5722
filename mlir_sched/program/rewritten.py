"""Rewrites of the whole program as variants: one per rewrite that applies to the program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from mlir_sched.compiler.worker_process import JobError, Worker, run_isolated
from mlir_sched.library.rewrite_script import RewriteScript
from mlir_sched.processes.limits import ChildError
from mlir_sched.program.variant import Variant
from mlir_sched.reasons import reason
from mlir_sched.targets import target_kind
from mlir_sched.targets.target import Target
from mlir_sched.tasks.model import EXTRACTION_LIMITS

ALL = "all rewrites"
"""What stands for the names of the rewrites when the worker process is lost with all of them."""
_JOB = "mlir_sched.program.rewrites.scripts:rewrite_scripts"
_JOB_OF_ONE = "mlir_sched.program.rewrites.scripts:script_of"


@dataclass(frozen=True)
class RewrittenVariants:
    """The rewrites of a program.

    Attributes:
        variants: One variant per rewrite that applies to the program.
        left_out: Why rewrites could not be tried, by name.
        internal_errors: Tracebacks of mlir-sched's own errors, each of which cost one rewrite, or all.
        parts: The parts of the program that another algorithm can compute in some of the variants.
    """

    variants: tuple[Variant, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    internal_errors: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()


@contextmanager
def rewriting(path: Path, target: Target) -> Iterator[Callable[[], RewrittenVariants]]:
    """Try rewrites of a program beside other work: yield a function that returns a variant per rewrite that applies.

    The work ends when the context is left before its end.

    Raises:
        UserError: By the function: the compiler rejects the program.
    """
    if not (rewrites := target_kind(target.name).rewrites):
        yield RewrittenVariants
        return
    with Worker(target.flags) as worker:
        worker.submit(_JOB, str(path), rewrites, target.cores)

        def rewritten() -> RewrittenVariants:
            scripts: tuple[RewriteScript, ...]
            raised: dict[str, str]
            parts: tuple[str, ...]
            try:
                scripts, raised, parts = worker.wait(EXTRACTION_LIMITS)
            except ChildError as error:
                return RewrittenVariants(left_out={ALL: f"IREE does not get through them: {reason(str(error))}"})
            except JobError as error:
                return _without({ALL: str(error)})
            variants = tuple(Variant(script.name, script.flags, script) for script in scripts)
            return replace(_without(raised, variants), parts=parts)

        yield rewritten


def decided_variant(path: Path, target: Target, name: str, parts: Sequence[str] = ()) -> Variant:
    """Return a variant of a program by the name of its flags or of its rewrite.

    Args:
        path: The program.
        target: What to compile for.
        name: Name of the variant, without other algorithms.
        parts: The parts that have another algorithm.

    Raises:
        UserError: The compiler rejects the program, or the variant does not apply to the program.
        MlirSchedError: IREE fails on the program.
    """
    kind = target_kind(target.name)
    if name in kind.variants and not parts:
        return Variant(name, kind.variants[name])
    arguments = str(path), kind.rewrites, target.cores, name, tuple(parts)
    script: RewriteScript = run_isolated(target.flags, _JOB_OF_ONE, *arguments, limits=EXTRACTION_LIMITS)
    return Variant(script.name, script.flags, script)


def _without(raised: Mapping[str, str], variants: tuple[Variant, ...] = ()) -> RewrittenVariants:
    """Return the variants of the other rewrites, given the tracebacks of those that raised, by name."""
    reasons = {name: reason(text) for name, text in raised.items()}
    return RewrittenVariants(variants, reasons, tuple(f"{name}: {text}" for name, text in raised.items()))
