"""Rewrites one after the other: each sees the program as the rewrites before it leave it.

A program of a form that IREE compiles wrong is repaired before the first of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from mlir_sched.compiler.operations import producer
from mlir_sched.errors import UserError
from mlir_sched.library import RewriteScript
from mlir_sched.program.rewrites.channels.permuted_weights import PermutedWeights
from mlir_sched.program.rewrites.folding.folded_constants import FoldedConstants
from mlir_sched.program.rewrites.padding.separate import FLAG_SITES
from mlir_sched.program.rewrites.recurrent.joined_steps import JoinedSteps
from mlir_sched.program.rewrites.repair.repaired import REPAIRS
from mlir_sched.program.rewrites.replacement import append_in_turn
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.site_rewrite import SiteRewrite
from mlir_sched.program.rewrites.staged_program import StagedProgram
from mlir_sched.transform_scripts.script.building import new_library, print_module

Stage = tuple[ProgramRewrite, StagedProgram]
"""A rewrite, and the program that it sees."""
FIRST: tuple[ProgramRewrite, ...] = (JoinedSteps(), FoldedConstants(), PermutedWeights())
"""What comes before all other rewrites, in this order, where it applies: a program has less to do with it. A plan of
flags alone leaves the program as it is, so that plain ``iree-compile`` makes it by the flags; what keeps places as
without a flag does not change that."""
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
    """Return the script of rewrites of a program, with what they require in front of each.

    A rewrite that has nothing to do where its turn comes is left out, with what it requires: other rewrites may take
    all its sites, or all of them stay as they are.

    Args:
        rewrites, program: As in :func:`applies`; none for a program that is repaired and not rewritten.
        name: Name of the script.
        kept: The sites that stay as they are.

    Raises:
        UserError: Nothing is left to do.
    """
    library, mark, symbols = new_library(), "", list[str]()
    for stages in _made(rewrites, program, kept):
        symbols.append(append_in_turn(library, [seen.append(library, rewrite) for rewrite, seen in stages]))
        *_, (last, _) = stages
        mark = last.name
    if not symbols:
        raise UserError(f"nothing is left to do for {name}: all its sites stay as they are; leave fewer of them so")
    return RewriteScript(name, append_in_turn(library, symbols), print_module(library), mark)


def rewritten(rewrites: Sequence[ProgramRewrite], program: StagedProgram) -> StagedProgram:
    """Return a program after those of some rewrites that have something to do."""
    for rewrite, seen in chain.from_iterable(_made(rewrites, program)):
        program = seen.after(rewrite)
    return program


def sites(rewrites: Sequence[ProgramRewrite], program: StagedProgram) -> list[StagedSite]:
    """Return the sites of rewrites that apply to a program, in the order in which they are rewritten.

    Args:
        rewrites, program: As in :func:`applies`.
    """
    return [
        StagedSite(rewrite.symbol, label, f"compute_{rewrite.symbol}_{number}", _locations(alike))
        for stages in _made(rewrites, program)
        for rewrite, seen in stages
        if isinstance(rewrite, SiteRewrite) and rewrite not in REPAIRS
        for kinds in [seen.found(rewrite)]
        for number, (label, alike) in zip(rewrite.numbers([*kinds.values()]), kinds.items(), strict=True)
    ]


def _locations(alike: Sequence[Any]) -> tuple[str, ...]:
    """Return the places in the source of ops that are replaced, of those that they read, and of their readers."""
    read = (value for site in alike for value in (*site.inputs, site.result))
    ops = [producer(value) for value in read] + [use.owner for site in alike for use in site.result.uses]
    return tuple(dict.fromkeys(str(op.location) for op in ops if op is not None))


def _made(rewrites: Sequence[ProgramRewrite], program: StagedProgram, kept: Kept = NONE_KEPT) -> Iterator[list[Stage]]:
    """Yield the stages of every rewrite that has something to do."""
    for stages in _stages(rewrites, program, kept):
        *_, (rewrite, seen) = stages
        if seen.applies(rewrite):
            yield stages


def _stages(
    rewrites: Sequence[ProgramRewrite], program: StagedProgram, kept: Kept = NONE_KEPT
) -> Iterator[list[Stage]]:
    """Yield the repairs of a program, then every rewrite behind those that it requires.

    Each sees what those before it that have something to do make of the program.
    """
    for repair in REPAIRS:
        if program.applies(repair):
            yield [(repair, program)]
            program = program.after(repair)
    first = _first(rewrites)
    for number, each in enumerate(rewrites):
        rewrite = _keeping(each, kept)
        before = first[: first.index(each)] if each in first else first
        stages, seen = _in_turn((*before, *program.requires(rewrite)), program, kept)
        yield [*stages, (rewrite, seen)]
        if number < len(rewrites) - 1 and seen.applies(rewrite):
            program, first = seen.after(rewrite), ()


def _first(rewrites: Sequence[ProgramRewrite]) -> Sequence[ProgramRewrite]:
    """Return what comes before the rewrites of a plan; nothing where they only keep places as without a flag."""
    return () if all(type(each) in FLAG_SITES.values() for each in rewrites) else FIRST


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
