"""Program variants: the same model under other compiler flags, or rewritten, without any script for a dispatch.

A variant decides which dispatches a model has, so it is chosen for the program as a whole: those that have dispatches
of their own are tuned (``variant_search.py``), and all of them compete once more with the tuned program at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlir_sched.compiler import ModelCompileError, applied_rewrites, compile_to_bytes
from mlir_sched.compiler.binary_hash import program_hash
from mlir_sched.compiler.workers import run_isolated
from mlir_sched.emission.library import build_library
from mlir_sched.errors import UserError
from mlir_sched.measurement import Timing
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.rewrite_script import RewriteScript
from mlir_sched.runner import BaselineError, Runner
from mlir_sched.runner.program import Program
from mlir_sched.runner.rules import rule_for_model
from mlir_sched.runner.verify import Rule
from mlir_sched.space import Space
from mlir_sched.target import Target
from mlir_sched.targets import Variant, target_kind
from mlir_sched.task import Task
from mlir_sched.tasks import EntryPoint, Model, extract
from mlir_sched.tasks.model import EXTRACTION_LIMITS

CLEARLY_FASTER = 1.02
"""A variant comes before the default only when its ratio is above this, beyond what noise explains."""


@dataclass(frozen=True)
class BuiltVariant:
    """A variant of one model, compiled and timed without scripts.

    Attributes:
        variant: Its name and flags.
        model: The model's dispatches under its flags.
        vmfb: The compiled program.
        timing: Time of its entry point, with its ratio to the default variant; None when it is wrong or fails.
    """

    variant: Variant
    model: Model
    vmfb: bytes
    timing: Timing | None


def build_variants(path: Path, target: Target, runner: Runner) -> tuple[BuiltVariant, ...]:
    """Compile the model under every variant of the target and time all of them, interleaved with the default.

    A variant that compiles to the same code as an earlier one is left out.

    Raises:
        UserError: The default variant cannot be compiled or run.
    """
    default, *others = target_kind(target.name).variants
    built = [_build(path, target, default)]
    for variant in (*others, *rewritten_variants(path, target)):
        try:
            built.append(_build(path, target, variant))
        except (UserError, ModelCompileError):
            continue  # flags that this model cannot be compiled with are no rival
    first = {program_hash(b.vmfb): b.variant.name for b in reversed(built)}
    return _time([b for b in built if b.variant.name in first.values()], runner)


def rewritten_variants(path: Path, target: Target) -> list[Variant]:
    """Return one variant per rewrite that applies to the program."""
    if not target_kind(target.name).rewrites:
        return []
    job = "mlir_sched.program_rewrites.scripts:rewrite_scripts"
    scripts: tuple[RewriteScript, ...] = run_isolated(
        target.flags, job, str(path), target.cores, limits=EXTRACTION_LIMITS
    )
    return [Variant(script.name, script.flags, script) for script in scripts]


def contenders(built: Sequence[BuiltVariant], space: Space, target: Target) -> list[BuiltVariant]:
    """Return the variants that are worth tuning, the fastest untuned one first.

    They have a dispatch to tune; of several with the same dispatches the fastest is taken. The default comes before
    those that are not clearly faster. Rewrites come before other flags: they were found to suit the program, and
    IREE's own code for what they make may be many times slower than a script's.
    """

    def rank(variant: BuiltVariant) -> float:
        ratio = variant.timing.ratio if variant.timing else 0.0
        return ratio * CLEARLY_FASTER if variant is built[0] else ratio

    tunable = [b for b in built if b.timing is not None and any(can_tune(t, space, target) for t in b.model.tasks)]
    fastest: dict[tuple[object, ...], BuiltVariant] = {}
    for variant in sorted(tunable, key=rank, reverse=True):
        dispatches = tuple((t.dispatch or t.name, t.inputs, t.outputs, t.weight) for t in variant.model.tasks)
        fastest.setdefault(dispatches, variant)
    first, others = [*fastest.values()][:1], [*fastest.values()][1:]
    return [*first, *sorted(others, key=lambda built: built.variant.rewrite is None)]


def can_tune(task: Task, space: Space, target: Target) -> bool:
    """Say whether the space has a program for a task."""
    return task.dispatch is not None and bool(space.sketches(task.dispatch, target))


def entry_of(model: Model) -> EntryPoint:
    """Return the entry point that is timed: the first one."""
    return model.entries[0]


def rule_of(model: Model) -> Rule:
    """Return how near the results of a model's programs must be to those of the untuned one."""
    return rule_for_model(entry_of(model).outputs, [task.dispatch for task in model.tasks if task.dispatch])


def program_of(entry: EntryPoint, vmfb: bytes) -> Program:
    """Return a compiled model as a program to run."""
    return Program(vmfb, f"{entry.name}", entry.inputs, entry.outputs, writes_into_arguments=False)


def _build(path: Path, target: Target, variant: Variant) -> BuiltVariant:
    if variant.rewrite is None:
        model = extract(path, target, variant.flags)
        return BuiltVariant(variant, model, compile_to_bytes(path, model.flags), None)
    text = build_library([], variant.rewrite)
    model = extract(path, target, variant.flags, text)
    with temporary_folder() as folder:
        library = Path(folder) / "library.mlir"
        library.write_text(text)
        if not applied_rewrites(path, model.flags, library):
            raise ModelCompileError(f"{path}: the rewrite {variant.rewrite.name} left no trace in the program")
        return BuiltVariant(variant, model, compile_to_bytes(path, model.flags, library), None)


def _time(built: Sequence[BuiltVariant], runner: Runner) -> tuple[BuiltVariant, ...]:
    entry = entry_of(built[0].model)
    default, *others = built
    rule = rule_of(default.model)
    try:
        timing, results = runner.measure(
            program_of(entry, default.vmfb), [program_of(entry, b.vmfb) for b in others], rule
        )
    except BaselineError as error:
        raise UserError(f"{default.model.path}: the untuned program cannot be measured: {error}") from error
    return (
        replace(default, timing=timing),
        *(replace(b, timing=result.timing) for b, result in zip(others, results, strict=True)),
    )
