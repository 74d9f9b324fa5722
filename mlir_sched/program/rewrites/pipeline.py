"""Rewrites one after the other: each sees the program as the rewrites before it leave it.

A program of a form that IREE compiles wrong is repaired before the first of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from mlir_sched.compiler.operations import producer
from mlir_sched.library import RewriteScript
from mlir_sched.program.rewrites.folding.folded_constants import FoldedConstants
from mlir_sched.program.rewrites.recurrent.joined_steps import JoinedSteps
from mlir_sched.program.rewrites.repair.repaired import REPAIRS
from mlir_sched.program.rewrites.replacement import append_in_turn
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.site_rewrite import SiteRewrite
from mlir_sched.program.rewrites.staged_program import StagedProgram
from mlir_sched.transform_scripts.script.building import new_library, print_module

Stage = tuple[ProgramRewrite, StagedProgram]
"""A rewrite, and the program that it sees."""
FIRST: tuple[ProgramRewrite, ...] = (JoinedSteps(), FoldedConstants())
"""What comes before all other rewrites, in this order, where it applies: a program has less to do with it."""
Kept = Mapping[str, tuple[str, ...]]
"""Labels of the sites that stay as they are, by the symbol of the rewrite."""
NONE_KEPT: Kept = {}


@dataclass(frozen=True)
class StagedSite:
    """All sites of a kind in the program that their rewrite sees.

    Attributes:
        rewrite: Symbol of the rewrite.
        label: Label of the kind.
        function: Symbol of the function that replaces the sites, in the script of the rewrites.
        locations: Where the replaced ops, and those next to them, stand in the source, as far as known; texts of
            MLIR locations.
    """

    rewrite: str
    label: str
    function: str
    locations: tuple[str, ...]


def applies(rewrites: Sequence[ProgramRewrite], program: StagedProgram) -> bool:
    """Say whether every rewrite applies to what the rewrites before it, and those that it requires, make of a program.

    Args:
        rewrites: The rewrites.
        program: The program as it enters IREE's preprocessing phase.
    """
    return all(seen.applies(rewrite) for *_, (rewrite, seen) in _stages(rewrites, program))


def script(
    rewrites: Sequence[ProgramRewrite], program: StagedProgram, name: str = "", kept: Kept = NONE_KEPT
) -> RewriteScript:
    """Return the script of rewrites that apply to a program, with what they require in front of each.

    Args:
        rewrites, program: As in :func:`applies`; none for a program that is repaired and not rewritten.
        name: Name of the script.
        kept: The sites that stay as they are.
    """
    library = new_library()
    groups = (
        append_in_turn(library, [seen.append(library, rewrite) for rewrite, seen in stages])
        for stages in _stages(rewrites, program, kept)
    )
    symbol = append_in_turn(library, list(groups))
    return RewriteScript(name, symbol, print_module(library))


def rewritten(rewrites: Sequence[ProgramRewrite], program: StagedProgram) -> StagedProgram:
    """Return a program after rewrites that apply."""
    for rewrite, seen in chain.from_iterable(_stages(rewrites, program)):
        program = seen.after(rewrite)
    return program


def sites(rewrites: Sequence[ProgramRewrite], program: StagedProgram) -> list[StagedSite]:
    """Return the sites of rewrites that apply to a program, in the order in which they are rewritten.

    Args:
        rewrites, program: As in :func:`applies`.
    """
    return [
        StagedSite(made.symbol, label, f"compute_{made.symbol}_{number}", _locations(alike))
        for stages in _stages(rewrites, program)
        for made, seen in stages
        if isinstance(made, SiteRewrite) and made not in REPAIRS
        for number, (label, alike) in enumerate(made.kinds(seen.module).items())
    ]


def _locations(alike: Sequence[Any]) -> tuple[str, ...]:
    """Return the places in the source of ops that are replaced, of those that they read, and of their readers."""
    read = (value for site in alike for value in (*site.inputs, site.result))
    ops = [producer(value) for value in read] + [use.owner for site in alike for use in site.result.uses]
    return tuple(dict.fromkeys(str(op.location) for op in ops if op is not None))


def _stages(
    rewrites: Sequence[ProgramRewrite], program: StagedProgram, kept: Kept = NONE_KEPT
) -> Iterator[list[Stage]]:
    """Yield the repairs of a program, then every rewrite behind those that it requires."""
    for repair in REPAIRS:
        if program.applies(repair):
            yield [(repair, program)]
            program = program.after(repair)
    for number, each in enumerate(rewrites):
        rewrite = _keeping(each, kept)
        first = (FIRST[: FIRST.index(each)] if each in FIRST else FIRST) if number == 0 else ()
        stages, seen = _in_turn((*first, *program.requires(rewrite)), program, kept)
        yield [*stages, (rewrite, seen)]
        if number < len(rewrites) - 1:
            program = seen.after(rewrite)


def _in_turn(
    rewrites: Sequence[ProgramRewrite], program: StagedProgram, kept: Kept
) -> tuple[list[Stage], StagedProgram]:
    """Return those of some rewrites that apply, with what each requires in front of it, and the program after that."""
    found = list[Stage]()
    for rewrite in (_keeping(each, kept) for each in rewrites):
        stages, seen = _in_turn(program.requires(rewrite), program, kept)
        if seen.applies(rewrite):
            found += [*stages, (rewrite, seen)]
            program = seen.after(rewrite)
    return found, program


def _keeping(rewrite: ProgramRewrite, kept: Kept) -> ProgramRewrite:
    """Return a rewrite of all sites but those that stay as they are."""
    if isinstance(rewrite, SiteRewrite) and rewrite.symbol in kept:
        return replace(rewrite, but=kept[rewrite.symbol])
    return rewrite
