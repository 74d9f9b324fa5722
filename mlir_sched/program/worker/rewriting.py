"""The plans that apply to a program, with the scripts of their rewrites (for ``variants/rewritten.py``).

Every function raises a UserError where the compiler rejects the program.
"""

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from iree.compiler import ir

from mlir_sched.compiler.worker.session import ABI, START, Compilation, context
from mlir_sched.errors import CompilerError, UserError
from mlir_sched.library import RewriteScript
from mlir_sched.program.plan import KeptSite, Plan, Site
from mlir_sched.program.program_space import KEPT, VARIANT, ProgramSpace, kept_by
from mlir_sched.program.repair import NO_REPAIR, ProgramRepair
from mlir_sched.program.rewrites.offered import offered_rewrites, offered_site_kinds
from mlir_sched.program.rewrites.pipeline import StagedSite, applies, script, sites
from mlir_sched.program.rewrites.repair.repaired import REPAIRED, REPAIRS
from mlir_sched.program.rewrites.staged_program import StagedProgram
from mlir_sched.program.rewrites.walked_program import CPU
from mlir_sched.sampling import Value

ALGORITHMS = "other algorithms"
"""What stands for the name of a plan where the other algorithms of a program cannot be found."""
Rewritten = tuple[Plan, RewriteScript]
"""A plan with rewrites, and their script for one program."""


class RewrittenPlans(NamedTuple):
    """What can be made of a program.

    Attributes:
        plans: Every plan with rewrites that applies to the program.
        refused: What the compiler says of plans whose rewrites it does not get through, by name.
        raised: The tracebacks of plans that raise any other exception, by name.
        sites: The sites that other algorithms can compute.
        repair: The repair of the program.
    """

    plans: tuple[Rewritten, ...]
    refused: Mapping[str, str]
    raised: Mapping[str, str]
    sites: tuple[Site, ...]
    repair: ProgramRepair


def rewritten_plans(path: str, kind: str, cores: int) -> RewrittenPlans:
    """Return every plan with rewrites that applies to a program, its sites and its repair.

    Args:
        kind: The kind of device, a key of ``REWRITES``; empty for a device without rewrites.

    Raises:
        UserError: The compiler rejects the program, or registered rewrites cannot be loaded.
    """
    with staged_program(path, kind) as program:
        return plans_of(program, kind, cores)


def plans_of(program: StagedProgram, kind: str, cores: int) -> RewrittenPlans:
    """Return what :func:`rewritten_plans` returns of a program that is read."""
    found, tried, with_choice = list[Rewritten](), Tried(), tuple[Site, ...]()
    repair = _repair(program)
    for plan in _plans(kind, cores):
        with tried.noted(plan.name):
            found += [(plan, _script(plan, program))] if applies(plan.steps, program) else []
    with tried.noted(ALGORITHMS):
        with_choice = _sites(program, kind)
    return RewrittenPlans(tuple(found), tried.refused, tried.raised, with_choice, repair)


@dataclass(frozen=True)
class Tried:
    """What fails while plans are tried, by their names; the attributes are those of :class:`RewrittenPlans`."""

    refused: dict[str, str] = field(default_factory=dict)
    raised: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def noted(self, name: str) -> Iterator[None]:
        """Note an exception in the context, and go on."""
        try:
            yield
        except CompilerError as error:
            self.refused[name] = str(error)
        except Exception:
            self.raised[name] = traceback.format_exc()


def repair_of(path: str) -> ProgramRepair:
    """Return the repair of a program."""
    with staged_program(path) as program:
        return _repair(program)


def other_algorithms(path: str, kind: str, plan: Plan) -> tuple[tuple[Site, RewriteScript], ...]:
    """Return the sites of a program that have a choice in a plan, each with the script in which it has its other one.

    A site without such a script, as the compiler does not get through the rewrites with it, is not among them.

    Args:
        path, kind: As in :func:`rewritten_plans`.
        plan: A plan that applies to the program, without other algorithms.
    """
    with staged_program(path, kind) as program:
        found = list[tuple[Site, RewriteScript]]()
        for site in filter(plan.has_choice, _sites(program, kind)):
            with suppress(CompilerError):
                found.append((site, _script(plan.with_algorithms([site]), program)))
        return tuple(found)


def script_of(path: str, kind: str, plan: Plan) -> RewriteScript:
    """Return the script of a plan with rewrites that apply to a program; ``kind`` as in :func:`rewritten_plans`."""
    with staged_program(path, kind) as program:
        return _script(plan, program)


def script_where_it_applies(path: str, kind: str, plan: Plan) -> RewriteScript | None:
    """Return what :func:`script_of` does; None where the rewrites do not apply to a program."""
    with staged_program(path, kind) as program:
        return _script(plan, program) if _applies(plan, program) else None


def sites_of(path: str, kind: str, plan: Plan) -> tuple[StagedSite, ...]:
    """Return the sites of a plan that applies to a program, those that a flag changes last; arguments as there."""
    with staged_program(path, kind) as program:
        return tuple(sites(plan.changes, program))


def kept(path: str, plan: Plan, values: Mapping[str, Value]) -> Rewritten:
    """Return a plan that applies to a program with the sites that decisions leave as they are, and its script.

    Raises:
        UserError: The compiler rejects the program, or it has none of these sites.
    """
    with staged_program(path) as program:
        keeping = _keeping(plan, program, values)
        if not keeping.steps:
            raise UserError(f"{path}: the program has no site that the decisions about {plan.name} leave as it was")
        return keeping, _script(keeping, program)


def decided(path: str, kind: str, cores: int, values: Mapping[str, Value]) -> Rewritten:
    """Return the plan that decisions about a program lead to, one with rewrites.

    Args:
        path, kind, cores: As in :func:`rewritten_plans`.

    Raises:
        UserError: The compiler rejects the program, or has no such plan.
    """
    with staged_program(path, kind) as program:
        plans = [plan for plan in _plans(kind, cores) if plan.name == values[VARIANT] and applies(plan.steps, program)]
        plan = ProgramSpace(tuple(plans), _sites(program, kind)).decided(values)
        if plan is not None:
            plan = _keeping(plan, program, values)
            return plan, _script(plan, program)
    raise UserError(f"{path}: the rewrite {values[VARIANT]} does not apply to this program")


def _plans(kind: str, cores: int) -> list[Plan]:
    return [Plan(rewrites) for rewrites in offered_rewrites(kind, cores)] if kind else []


def _sites(program: StagedProgram, kind: str) -> tuple[Site, ...]:
    """Return the sites that another algorithm can compute, each once, in the program's order."""
    return tuple(
        dict.fromkeys(Site(each, shape) for each in offered_site_kinds(kind) for shape in each.shapes(program))
        if kind
        else ()
    )


def _repair(program: StagedProgram) -> ProgramRepair:
    forms = tuple(repair.form.name for repair in REPAIRS if program.applies(repair))
    return ProgramRepair(script((), program, REPAIRED), forms) if forms else NO_REPAIR


def _keeping(plan: Plan, program: StagedProgram, values: Mapping[str, Value]) -> Plan:
    """Return a plan that applies to a program with the sites that decisions leave as they are."""
    if KEPT not in values.values():
        return plan
    return plan.keeping(kept_by(values, (KeptSite(s.rewrite, s.label) for s in sites(plan.changes, program))))


def _applies(plan: Plan, program: StagedProgram) -> bool:
    """Say whether the rewrites of a plan apply to a program, which has a site of the other algorithms if there are any.

    With another algorithm for a site a rewrite may have nothing left to do.
    """
    if not applies(plan.base.steps, program):
        return False
    return not plan.algorithms or any(site.shape in site.kind.shapes(program) for site in plan.algorithms)


def _script(plan: Plan, program: StagedProgram) -> RewriteScript:
    return script(plan.steps, program, plan.name, plan.but)


@contextmanager
def parsed_program(path: str) -> Iterator[ir.Module]:
    """Give the program as it enters IREE's preprocessing phase."""
    with context(), ir.Location.unknown(), Compilation() as compilation:
        try:
            compilation.load_file(path)
            compilation.run(START, ABI)
        except CompilerError as error:
            raise UserError(str(error).splitlines()[0]) from None
        context().get_dialect_descriptor("transform")  # building ops, unlike parsing them, does not load it
        yield compilation.module()


@contextmanager
def staged_program(path: str, kind: str = CPU) -> Iterator[StagedProgram]:
    """Give the program with what rewrites make of it on a kind of device; no kind is needed where all make the same."""
    with parsed_program(path) as program:
        yield StagedProgram(program, kind)
