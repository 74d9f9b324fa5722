"""The census of one program, what its time goes into by its profile, and the censuses of a network's programs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.networks.census.movement import Movement, movement_of, written_bytes
from benchmarks.networks.comparison import Result
from mlir_sched.database.record import describe
from mlir_sched.errors import UserError
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.variants.tunability import can_tune, tunable_share
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task
from mlir_sched.tasks.unscheduled import why_unscheduled

AS_IT_IS, REWRITTEN, TUNED = "untuned", "rewritten", "tuned"
"""The programs of a network: as ``iree-compile`` compiles it, with the most rewrites but no scripts, and as emitted."""
LEAST_SCRIPTED, MOST_MOVED = 0.9, 0.05
"""Least share of the dispatches' time that should be in dispatches that can have scripts, and largest share of a call
that should be in dispatches that only move elements. Beyond either, dispatches are named one by one."""


@dataclass(frozen=True)
class OtherDispatch:
    """A dispatch that can have no script, or only moves elements.

    Attributes:
        name: Its symbol.
        what: Its ops with their loop extents; empty where they are not known.
        why: Why it can have no script; empty where it can.
        movement: What it does where it only moves elements; None where it computes.
        share: Part of the dispatches' time that its calls take, 0 to 1.
        written_bytes: Bytes that its calls write in one run.
    """

    name: str
    what: str
    why: str
    movement: Movement | None
    share: float
    written_bytes: int


@dataclass(frozen=True)
class ProgramCensus:
    """What the time of a program goes into.

    Attributes:
        variant: Name of the program's variant.
        dispatches_s: Seconds of all dispatches in one run.
        between_s: Seconds of a run in which no dispatch runs.
        scripted: Part of the dispatches' time in those that can have scripts, 0 to 1.
        written_bytes: Bytes that all dispatches write in one run.
        others: The dispatches that can have no script or only move elements, that of most time first.
    """

    variant: str
    dispatches_s: float
    between_s: float
    scripted: float
    written_bytes: int
    others: tuple[OtherDispatch, ...]

    @property
    def call_s(self) -> float:
        """Seconds of a run from its first dispatch to its last one."""
        return self.dispatches_s + self.between_s

    @property
    def between(self) -> float:
        """Part of a run's time in which no dispatch runs, 0 to 1."""
        return self.between_s / self.call_s

    @property
    def moving(self) -> tuple[OtherDispatch, ...]:
        """The dispatches that only move elements."""
        return tuple(each for each in self.others if each.movement is not None)

    @property
    def moved(self) -> float:
        """Part of a run's time in dispatches that only move elements, 0 to 1."""
        return sum(each.share for each in self.moving) * self.dispatches_s / self.call_s

    @property
    def moved_bytes(self) -> int:
        """Bytes that these write in one run."""
        return sum(each.written_bytes for each in self.moving)

    @property
    def moved_of_written(self) -> float:
        """Part of the bytes that all dispatches write that these write, 0 to 1: the same with scripts as without."""
        return self.moved_bytes / self.written_bytes

    @property
    def binding(self) -> tuple[OtherDispatch, ...]:
        """The dispatches that keep the program from a goal: those without scripts, and those that move elements."""
        scripts, moves = self.scripted < LEAST_SCRIPTED, self.moved > MOST_MOVED
        return tuple(each for each in self.others if (scripts and each.why) or (moves and each.movement))


@dataclass(frozen=True)
class NetworkCensus:
    """The census of a network.

    Attributes:
        network: Its name.
        programs: The census of each of its programs, by :data:`AS_IT_IS`, :data:`REWRITTEN` and :data:`TUNED`.
        left_out: Why further programs do not compile, by the names of their variants.
        internal_errors: mlir-sched's own errors, a line each.
        compared: The comparison with engines; None where there was none.
    """

    network: str
    programs: Mapping[str, ProgramCensus]
    left_out: Mapping[str, str] = field(default_factory=dict)
    internal_errors: tuple[str, ...] = ()
    compared: Result | None = None

    @property
    def last(self) -> tuple[str, ProgramCensus]:
        """The program that is furthest on, with its name."""
        return next((name, self.programs[name]) for name in (TUNED, REWRITTEN, AS_IT_IS) if name in self.programs)


def census_of(name: str, built: BuiltVariant, space: Space, target: Target) -> ProgramCensus:
    """Return the census of a program.

    Raises:
        UserError: IREE records no profile of it.
    """
    profile, scripted = built.profile, tunable_share(built, space, target)
    if profile is None or scripted is None:
        raise UserError(f"{built.model.path}: IREE records no profile of {name}")
    shares = profile.shares(task.name for task in built.model.tasks)
    tunable = {task.name for task in built.model.tasks if can_tune(task, space, target)}
    tasks = {task.name: task for task in built.model.tasks}
    found = (_other(task, shares[name], name in tunable) for name, task in tasks.items())
    others = sorted((each for each in found if each is not None), key=lambda each: -each.share)
    written = sum(map(written_bytes, built.model.tasks))
    return ProgramCensus(name, profile.total_s, profile.between_s, scripted, written, tuple(others))


def _other(task: Task, share: float, has_scripts: bool) -> OtherDispatch | None:
    """Return a dispatch as one of the others; None for one that computes and can have scripts."""
    movement = movement_of(task)
    if has_scripts and movement is None:
        return None
    what, why = describe(task.dispatch) if task.dispatch else "", "" if has_scripts else why_unscheduled(task)
    return OtherDispatch(task.name, what, why, movement, share, written_bytes(task))
