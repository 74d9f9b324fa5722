"""Transform modules, which look at an op and extend a sketch, and the sketches themselves.

A sketch is a schedule program in named stages. Modules are asked in their list's order about every op of the
dispatch, producers first; each module may leave a sketch as it is, extend it, or extend it in several ways
(MetaSchedule's post-order apply, ``post_order_apply.cc``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache, cached_property, partial
from typing import Any, ClassVar, TypeAlias

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.sampling import Value
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Loops, parallel_loops


class Stage(IntEnum):
    """The stages of a sketch: its steps run by stage, independently of the order in which modules added them."""

    DISTRIBUTE = 0
    TILE = 1
    LOWER = 2


@dataclass(frozen=True)
class Step:
    """One part of a schedule program, added by one module."""

    stage: Stage
    module: str
    run: Callable[[Schedule], None]


@dataclass(frozen=True)
class Template:
    """A candidate that a module guesses from the sizes of a dispatch and of the machine, before anything is measured.

    Attributes:
        program: Name of the program that it is of (:meth:`MatchingModule.programs`).
        values: Values of decisions by name, those that other modules draw among them (``workgroup_0``). A decision that
            is not named takes the likeliest value of its distribution; a value that does not fit becomes the nearest
            one that does.
    """

    program: str
    values: Mapping[str, Value]


@dataclass(frozen=True)
class Sketch:
    """A schedule program under construction.

    Attributes:
        name: The modules and variants that made it, joined by ``+``.
        steps: Its steps, in the order they were added.
        claimed: Indices of the ops whose schedule is decided; later modules leave these ops alone.
        parallel: Loops of the dispatch's root that may be distributed over workgroups, outermost first; None when
            distribution is decided (or left to IREE, as with a lowering_config).
        complete: Whether the sketch's script can be compiled.
        passes: The compiler's passes that run on the function before any of its ops become vectors.
        templates: Returns the values of the sketch's templates, each with its place among all of the module.
    """

    name: str = ""
    steps: tuple[Step, ...] = ()
    claimed: tuple[int, ...] = ()
    parallel: Loops | None = None
    complete: bool = False
    passes: tuple[str, ...] = ()
    templates: Callable[[], Sequence[tuple[int, Mapping[str, Value]]]] = tuple

    def extended(self, name: str, step: Step, **changes: object) -> Sketch:
        """Return a copy with one more step; ``name`` is appended unless empty."""
        full = "+".join(part for part in (self.name, name) if part)
        return replace(self, name=full, steps=(*self.steps, step), **changes)  # type: ignore[arg-type]

    @cached_property
    def ordered_steps(self) -> tuple[Step, ...]:
        """The steps in the order to run them: by stage, then as they were added."""
        return tuple(sorted(self.steps, key=lambda step: step.stage))


class TransformModule(ABC):
    """A piece of a design space. Subclass it, or :class:`ScheduleModule` for the common case.

    Attributes:
        name: Unique in a space; part of the names of the sketches that the module makes.
        stage: The stage of the module's steps.
        backends: IREE backends that the module is for; empty for all.
    """

    name: ClassVar[str]
    stage: ClassVar[Stage] = Stage.TILE
    backends: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def extend(self, sketch: Sketch, op: LinalgOp, dispatch: Dispatch, target: Target) -> Iterable[Sketch]:
        """Return the sketches to go on with at an op: ``(sketch,)`` to leave it, or one or more extensions of it."""

    def is_for(self, target: Target) -> bool:
        """Say whether the module can be used for a target."""
        return not self.backends or target.backend in self.backends

    @property
    def made_for(self) -> str:
        """What the module can be used for, in the user's words."""
        return ", ".join(self.backends) or "all targets"

    def step(self, run: Callable[[Schedule], None]) -> Step:
        """Return a step of this module."""
        return Step(self.stage, self.name, run)


ScheduleProgram: TypeAlias = Callable[[Schedule, Any], None]
"""A function that schedules what a module's ``match`` found: it draws decisions, tiles and vectorizes every op."""


class MatchingModule(TransformModule):
    """A transform module that schedules whole dispatches: a match, and one or more programs for what it finds."""

    @abstractmethod
    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Any:
        """Return what the programs need to know of the dispatch, or None if it is not scheduled from this op."""

    def programs(self) -> Mapping[str, ScheduleProgram]:
        """Return the programs by name; by default only :meth:`schedule`, under the empty name."""
        return {"": self.schedule}

    def schedule(self, s: Schedule, found: Any) -> None:
        """Draw decisions, then schedule every op of the dispatch."""
        raise NotImplementedError(f"the transform module {self.name} has neither schedule nor programs")

    def templates(self, found: Any, dispatch: Dispatch, target: Target) -> Iterable[Template]:
        """Return candidates to try before any others, the best guess first; by default none."""
        del found, dispatch, target
        return ()

    def _known_templates(self, found: Any, dispatch: Dispatch, target: Target) -> Sequence[Template]:
        templates, names = tuple(self.templates(found, dispatch, target)), self.programs().keys()
        unknown = [template.program for template in templates if template.program not in names]
        if unknown:
            raise ValueError(f"a template is of the program {unknown[0]!r}; there are {', '.join(map(repr, names))}")
        return templates

    @abstractmethod
    def left_open(self, found: Any, dispatch: Dispatch) -> dict[str, Any]:
        """Return what of a :class:`Sketch` the programs leave to other modules, by attribute."""

    def extend(self, sketch: Sketch, op: LinalgOp, dispatch: Dispatch, target: Target) -> Iterable[Sketch]:
        """Extend untouched sketches at ops that match, and keep the untouched sketch for other modules."""
        if sketch.steps or (found := self.match(op, dispatch, target)) is None:
            return (sketch,)
        claimed, left_open = tuple(o.index for o in dispatch.ops), self.left_open(found, dispatch)
        guessed = cache(partial(self._known_templates, found, dispatch, target))
        made = [sketch]
        for name, run in self.programs().items():
            step = self.step(partial(_run, run, found))
            full = ".".join(filter(None, (self.name, name)))
            templates = partial(_of_program, name, guessed)
            made.append(sketch.extended(full, step, claimed=claimed, templates=templates, **left_open))
        return made


def _run(program: ScheduleProgram, found: Any, s: Schedule) -> None:
    program(s, found)


def _of_program(name: str, guessed: Callable[[], Sequence[Template]]) -> Sequence[tuple[int, Mapping[str, Value]]]:
    return [(place, template.values) for place, template in enumerate(guessed()) if template.program == name]


class ScheduleModule(MatchingModule):
    """A transform module whose programs tile and vectorize every op of a dispatch, which is inside a workgroup by then.

    Distribution over workgroups comes before the programs, lowering after them; both are the work of other modules.
    """

    def parallel(self, found: Any, dispatch: Dispatch) -> Loops:
        """Return the loops of the dispatch's root that may be distributed; by default all parallel loops.

        The last loop matters most: on GPUs, neighbouring threads walk it.
        """
        del found
        return parallel_loops(dispatch.root)

    def left_open(self, found: Any, dispatch: Dispatch) -> dict[str, Any]:
        """Leave distribution and lowering open."""
        return {"parallel": self.parallel(found, dispatch)}


class DelegatingModule(MatchingModule):
    """A transform module whose programs draw tile sizes and leave the dispatch to one of IREE's own pipelines.

    The programs call :meth:`~mlir_sched.transform_scripts.schedule.Schedule.delegate`; no other module adds a step.
    """

    stage: ClassVar[Stage] = Stage.LOWER

    def left_open(self, found: Any, dispatch: Dispatch) -> dict[str, Any]:
        """Leave nothing open: the pipeline distributes and lowers."""
        del found, dispatch
        return {"complete": True}


class DistributionModule(TransformModule):
    """A transform module that distributes a dispatch over parallel workers, after other modules scheduled the rest."""

    stage: ClassVar[Stage] = Stage.DISTRIBUTE

    @abstractmethod
    def distribute(self, s: Schedule, loops: Loops) -> None:
        """Tile the root along some of its parallel ``loops`` and fuse the other ops into the tile.

        Args:
            loops: What the module of the sketch's programs returned as
                :meth:`~mlir_sched.transform_scripts.module.ScheduleModule.parallel`.
        """

    def can_distribute(self, loops: Loops, target: Target) -> bool:
        """Say whether the module distributes these loops of a root on a target; by default any."""
        del loops, target
        return True

    def extend(self, sketch: Sketch, op: LinalgOp, dispatch: Dispatch, target: Target) -> Iterable[Sketch]:
        """Extend sketches that left distribution open, once per dispatch."""
        loops = sketch.parallel
        if loops is None or op.index != dispatch.root.index or not self.can_distribute(loops, target):
            return (sketch,)
        return (sketch.extended("", self.step(lambda s: self.distribute(s, loops)), parallel=None),)


class LoweringModule(TransformModule):
    """A transform module that lowers vectorized code on tensors to code that IREE only has to translate."""

    stage: ClassVar[Stage] = Stage.LOWER

    @abstractmethod
    def lower(self, s: Schedule) -> None:
        """Bufferize, lower the vectors and take the function out of IREE's own pipelines."""

    def extend(self, sketch: Sketch, op: LinalgOp, dispatch: Dispatch, target: Target) -> Iterable[Sketch]:
        """Complete sketches whose every op is scheduled."""
        del target
        scheduled = len(sketch.claimed) == len(dispatch.ops) and sketch.parallel is None
        if not scheduled or sketch.complete or op.index != dispatch.root.index:
            return (sketch,)
        return (sketch.extended("", self.step(self.lower), complete=True),)
