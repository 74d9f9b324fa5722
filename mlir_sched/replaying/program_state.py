"""The state of what a library does with the whole program: as its decisions say, or edited by a person."""

from dataclasses import dataclass, replace
from pathlib import Path

from mlir_sched.compiler.reasons import reason
from mlir_sched.errors import IllegalTraceError, MlirSchedError, ScriptError, UserError
from mlir_sched.library.library import has_rewrite, program_decisions, with_rewrite
from mlir_sched.program.plan import Plan, Site
from mlir_sched.program.program_space import PROGRAM, VARIANT
from mlir_sched.program.repair import NO_REPAIR, ProgramRepair
from mlir_sched.program.rewrites.offered import offered_rewrites, offered_site_kinds
from mlir_sched.program.variant import Variant
from mlir_sched.program.variants.rewritten import decided_variant
from mlir_sched.replaying.script_state import ScriptState
from mlir_sched.targets import target_kind
from mlir_sched.targets.target import Target
from mlir_sched.tasks import TASK_FLAGS
from mlir_sched.text import changed_decisions
from mlir_sched.trace import Trace
from mlir_sched.tuned_folder.folder import TunedFolder


@dataclass(frozen=True)
class ProgramJudgement:
    """The state of the decisions about a program, and the folder to use.

    Attributes:
        state: How the library and its flags relate to the decisions; None for a library that states none.
        note: What was changed, or why it is refused; for people.
        folder: The folder with the library and the flags that the decisions lead to; nothing is written.
    """

    state: ScriptState | None
    note: str
    folder: TunedFolder


def judge_program(
    folder: TunedFolder, model: Path, target: Target, repair: ProgramRepair = NO_REPAIR
) -> ProgramJudgement:
    """Return the state of the decisions about a program that a folder's library states."""
    try:
        decisions = program_decisions(folder.library) if folder.library else ()
    except IllegalTraceError as error:
        return ProgramJudgement(ScriptState.REFUSED, str(error), folder)
    except ScriptError as error:
        return ProgramJudgement(ScriptState.HAND_WRITTEN, str(error), folder)
    if not decisions:
        return ProgramJudgement(None, "", folder)
    trace = Trace(PROGRAM, decisions)
    if VARIANT not in trace.values:
        note = f"the decision {VARIANT!r} is missing; restore it, or tune again"
        return ProgramJudgement(ScriptState.HAND_WRITTEN, note, folder)
    try:
        decided = decided_variant(model, target, trace.values, repair)
    except MlirSchedError as error:
        return ProgramJudgement(ScriptState.REFUSED, reason(str(error)), folder)
    emitted = folder.emitted_decisions
    changed = changed_decisions(trace.values, emitted)
    if _is_of(folder, decided, target):
        return ProgramJudgement(ScriptState.EDITED if changed else ScriptState.AS_TUNED, changed, folder)
    if changed and emitted and VARIANT in emitted:
        before = decided_variant(model, target, emitted, repair)
        if _is_of(folder, before, target):
            library = with_rewrite(folder.library, before.rewrite, decided.rewrite, trace)
            flags = _flags(decided, target, scripts=_has_scripts(folder))
            note = f"{changed}; what follows from it is generated anew"
            return ProgramJudgement(ScriptState.EDITED, note, replace(folder, library=library, flags=flags))
    note = "more than the decisions about the program was changed; it is verified as it stands"
    return ProgramJudgement(ScriptState.HAND_WRITTEN, note, folder)


def _is_of(folder: TunedFolder, variant: Variant, target: Target) -> bool:
    """Say whether a folder has the rewrite and the flags of a variant."""
    flags = _flags(variant, target, scripts=_has_scripts(folder))
    return set(folder.flags) == set(flags) and has_rewrite(folder.library, variant.rewrite)


def _flags(variant: Variant, target: Target, *, scripts: bool) -> tuple[str, ...]:
    return (*target.flags, *(TASK_FLAGS if scripts else ()), *variant.plan.flags)


def _has_scripts(folder: TunedFolder) -> bool:
    return set(TASK_FLAGS) <= set(folder.flags)


def require_own_flags(folder: TunedFolder, target: Target) -> None:
    """Refuse a folder with a flag that ``tune`` does not write for the target.

    Flags decide what the compiler runs and which files it writes (linkers, plugins, dumps, passes, further response
    files), so those of a folder that comes from elsewhere are compared with those of our own targets, variants and
    rewrites.

    Raises:
        UserError: The folder has such a flag.
    """
    own = own_flags(target)
    for flag in folder.flags:
        if flag not in own:
            raise UserError(
                f"{folder.path / 'flags.txt'} has {flag}, which tune does not write; replay runs only what tune can "
                "have written: take that flag out, or tune again"
            )


def own_flags(target: Target) -> frozenset[str]:
    """Return every flag that ``tune`` may write for a target, except for the flags that name a library."""
    kind = target_kind(target.name)
    variants = (flag for flags in kind.variants.values() for flag in flags)
    plans = [Plan(made) for made in offered_rewrites(kind.rewrites, target.cores)] if kind.rewrites else []
    sites = [Site(each, "") for each in offered_site_kinds(kind.rewrites)] if kind.rewrites else []
    plans += [plan.with_algorithms([site]) for plan in plans for site in sites if plan.has_choice(site)]
    rewrites = (flag for plan in plans for flag in plan.flags)
    return frozenset((*target.flags, *TASK_FLAGS, *variants, *rewrites))
