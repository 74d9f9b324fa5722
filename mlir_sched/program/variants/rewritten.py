"""Rewrites of the whole program as variants: one per rewrite that applies to the program.

All functions ask a worker process. They raise a UserError where the compiler rejects the program, and an MlirSchedError
where IREE fails on it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mlir_sched.compiler.reasons import reason
from mlir_sched.compiler.worker_process import JobError, Worker, run_isolated
from mlir_sched.errors import CompilerError
from mlir_sched.library import RewriteScript
from mlir_sched.processes.limits import ChildError
from mlir_sched.program.plan import Flags, Plan, Site
from mlir_sched.program.program_space import KEPT, VARIANT
from mlir_sched.program.repair import NO_REPAIR, ProgramRepair
from mlir_sched.program.rewrites.pipeline import StagedSite
from mlir_sched.program.variant import Variant
from mlir_sched.sampling import Value
from mlir_sched.targets import target_kind
from mlir_sched.targets.target import Target
from mlir_sched.tasks.model import EXTRACTION_LIMITS

ALL = "all rewrites"
"""What stands for the names of the rewrites when the worker process is lost with all of them."""
_JOB = "mlir_sched.program.worker.rewriting:rewritten_plans"
_DECIDED = "mlir_sched.program.worker.rewriting:decided"
_SCRIPT = "mlir_sched.program.worker.rewriting:script_of"
_REPAIR = "mlir_sched.program.worker.rewriting:repair_of"
_SCRIPT_WHERE = "mlir_sched.program.worker.rewriting:script_where_it_applies"
_SITES = "mlir_sched.program.worker.rewriting:sites_of"
_KEPT_IN = "mlir_sched.program.worker.rewriting:kept"


@dataclass(frozen=True)
class RewrittenVariants:
    """The rewrites of a program.

    Attributes:
        variants: One variant per rewrite that applies to the program.
        left_out: Why rewrites could not be tried, by name.
        internal_errors: Tracebacks of mlir-sched's own errors, each of which cost one rewrite, or all.
        sites: The sites of the program that another algorithm can compute in some of the variants.
        repair: The repair of the program, which the scripts of all variants begin with.
    """

    variants: tuple[Variant, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    internal_errors: tuple[str, ...] = ()
    sites: tuple[Site, ...] = ()
    repair: ProgramRepair = NO_REPAIR


@contextmanager
def rewriting(path: Path, target: Target) -> Iterator[Callable[[], RewrittenVariants]]:
    """Try rewrites of a program beside other work: yield a function that returns a variant per rewrite that applies.

    The work ends when the context is left before its end.
    """
    with Worker(target.flags) as worker:
        worker.submit(_JOB, *_of(path, target), target.cores)

        def rewritten() -> RewrittenVariants:
            plans: tuple[tuple[Plan, RewriteScript], ...]
            refused: dict[str, str]
            raised: dict[str, str]
            sites: tuple[Site, ...]
            repair: ProgramRepair
            try:
                plans, refused, raised, sites, repair = worker.wait(EXTRACTION_LIMITS)
            except (ChildError, CompilerError) as error:
                return RewrittenVariants(left_out={ALL: f"IREE does not get through them: {reason(str(error))}"})
            except JobError as error:
                return RewrittenVariants(left_out={ALL: reason(str(error))}, internal_errors=(f"{ALL}: {error}",))
            variants = tuple(Variant(plan, script) for plan, script in plans)
            left_out = {name: f"IREE does not get through it: {reason(text)}" for name, text in refused.items()}
            left_out |= {name: reason(text) for name, text in raised.items()}
            errors = tuple(f"{name}: {text}" for name, text in raised.items())
            return RewrittenVariants(variants, left_out, errors, sites, repair)

        yield rewritten


def flagged_variants(target: Target) -> list[Variant]:
    """Return a variant per flags of IREE's own that compete on a target, the default first."""
    return [Variant(Plan(own_flags=Flags(name, flags))) for name, flags in target_kind(target.name).variants.items()]


def planned_variant(path: Path, target: Target, plan: Plan) -> Variant:
    """Return the variant of a program by a plan with rewrites that apply to the program."""
    return Variant(plan, run_isolated(target.flags, _SCRIPT, *_of(path, target), plan, limits=EXTRACTION_LIMITS))


def program_repair(path: Path, target: Target) -> ProgramRepair:
    """Return the repair of a program."""
    found: ProgramRepair = run_isolated(target.flags, _REPAIR, str(path), limits=EXTRACTION_LIMITS)
    return found


def decided_variant(
    path: Path, target: Target, values: Mapping[str, Value], repair: ProgramRepair = NO_REPAIR
) -> Variant:
    """Return the variant of a program that decisions lead to; a variant without a choice of algorithms has none.

    Args:
        values: The decisions, that of the variant among them.

    Raises:
        UserError: The variant does not apply to the program.
    """
    for variant in flagged_variants(target):
        if variant.name == values[VARIANT]:
            return _with_kept(path, target, repair.of(variant), values)
    arguments = *_of(path, target), target.cores, dict(values)
    plan, script = run_isolated(target.flags, _DECIDED, *arguments, limits=EXTRACTION_LIMITS)
    return Variant(plan, script)


def applying_variant(path: Path, target: Target, plan: Plan) -> Variant | None:
    """Return the variant of a program by a plan, repaired; None where its rewrites do not apply to the program."""
    if not plan.steps:
        return program_repair(path, target).of(Variant(plan))
    script = run_isolated(target.flags, _SCRIPT_WHERE, *_of(path, target), plan, limits=EXTRACTION_LIMITS)
    return Variant(plan, script) if script is not None else None


def placed_sites(path: Path, target: Target, plan: Plan) -> tuple[StagedSite, ...]:
    """Return the sites of a plan that applies to a program, those that a flag changes last."""
    arguments = *_of(path, target), plan
    found: tuple[StagedSite, ...] = run_isolated(target.flags, _SITES, *arguments, limits=EXTRACTION_LIMITS)
    return found


def _of(path: Path, target: Target) -> tuple[str, str]:
    """Return the program and the kind of device, as the jobs take them."""
    return str(path), target_kind(target.name).rewrites


def _with_kept(path: Path, target: Target, variant: Variant, values: Mapping[str, Value]) -> Variant:
    """Return a variant by flags with the sites that decisions leave as they are."""
    if KEPT not in values.values():
        return variant
    arguments = str(path), variant.plan, dict(values)
    plan, script = run_isolated(target.flags, _KEPT_IN, *arguments, limits=EXTRACTION_LIMITS)
    return Variant(plan, script)
