"""The choice of algorithms for sites of a program, by the time of their dispatches with the best scripts."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from mlir_sched.compiler.reasons import reason
from mlir_sched.database.work_cost import WorkKind
from mlir_sched.errors import MlirSchedError
from mlir_sched.program.variants.other_algorithms import OtherAlgorithm, OtherAlgorithms
from mlir_sched.program.variants.weight_bound import NO_BOUND, WeightBound
from mlir_sched.tasks import Model
from mlir_sched.tasks.task import Task
from mlir_sched.text import seconds
from mlir_sched.tuning.program_search import ProgramSearch
from mlir_sched.tuning.progress import Phase
from mlir_sched.tuning.tuning_run import TuningRun

NOT_TIMED = "the program with it fails or gives other numbers"
"""Why a chosen algorithm is left out after all."""
LEAST_GAIN = 0.05
"""Least gain of an algorithm, relative to the time of the dispatches that it replaces: dispatches may take a little
longer in the program than alone."""
OTHERS = "other algorithms"
"""What is left out where the alternatives of a program cannot be found."""
NO_SCRIPTS = "not all of its dispatches can have scripts"
"""Why an algorithm is left out whose dispatches no transform module schedules on this target."""
LEAST_SHARE = 0.01
"""Least share of a program's time in the dispatches that an algorithm replaces: a smaller share is not worth the
candidates for the dispatches of the algorithm (:data:`~mlir_sched.tuning.budget.ALGORITHMS_CANDIDATES`)."""
SMALL_SHARE = "the dispatches that it replaces take little of the program's time"
"""Why an algorithm is left out that replaces less."""
NO_TIME_TO_SEARCH = "the time is better spent on the program's own dispatches"
"""Why an algorithm for little of the program's time is left out in a short run by time."""
NOT_MEASURED = "not all of its dispatches were measured"
"""Why an algorithm is left out in a short run by time."""


@dataclass(frozen=True)
class Alternatives:
    """The other algorithms that are searched together with a program.

    Attributes:
        algorithms: The algorithms; none where they are not worth the search.
        share: Share of the program's time, 0 to 1, in the dispatches that they replace.
    """

    algorithms: tuple[OtherAlgorithm, ...] = ()
    share: float = 0.0

    @property
    def made(self) -> list[Task]:
        """The tasks of the algorithms' own dispatches."""
        return [task for algorithm in self.algorithms for task in algorithm.made]

    @property
    def keys(self) -> frozenset[str]:
        """Keys of all tasks in which an algorithm differs from the program."""
        return frozenset[str]().union(*(algorithm.keys for algorithm in self.algorithms))


@dataclass
class AlgorithmChoice:
    """The choice of one run, made once: a resumed run makes the same choice.

    Attributes:
        algorithms: The algorithms that sites of the model's variants may have.
        bound: The bound of the program's weights.
        left_out: Why algorithms are not used, by name.
        ratios: How many times as fast as what it replaces each algorithm is of which all was measured, by name.
    """

    run: TuningRun
    algorithms: OtherAlgorithms
    bound: WeightBound = NO_BOUND
    left_out: dict[str, str] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)

    def alternatives(self, program: ProgramSearch, *, elsewhere: int) -> Alternatives:
        """Return the other algorithms for sites of a program; none where too little of the budget is left."""
        tried, now_s = program.tried + elsewhere, self.run.clock.spent_s()
        afforded = self.run.budget.affords_algorithms(
            tried=tried, tasks=len(program.tasks), now_s=now_s, algorithms_s=self.run.ledger.algorithms_s
        )
        if not self.run.decide("tries-algorithms", lambda: afforded):
            return Alternatives()
        program.tell(Phase.VARIANTS)
        try:
            with self.run.ledger.counting(WorkKind.ALGORITHMS, program.name):
                found = self.algorithms.alternatives(program.built)
        except MlirSchedError as error:
            self.left_out = {OTHERS: reason(str(error))}
            return Alternatives()
        shares = self.run.decide("shares-of-parts", lambda: _shares(program, found))
        small = [name for name, share in shares.items() if share < LEAST_SHARE]
        too_large = {a.name: self.bound.why_above(program.built.model, a.further_bytes) for a in found}
        self.left_out = {a.name: SMALL_SHARE for a in found if a.site.name in small}
        self.left_out |= {name: why for name, why in too_large.items() if why}
        large = tuple(a for a in found if a.name not in self.left_out)
        share = min(1.0, sum(shares.get(name, 1.0) for name in {a.site.name for a in large}))
        now_s = self.run.clock.spent_s()
        composing_s = self.run.ledger.composing_s
        worth = self.run.budget.is_worth_composing(share=share, now_s=now_s, composing_s=composing_s)
        if not self.run.decide("searches-algorithms", lambda: worth):
            self.left_out |= {a.name: NO_TIME_TO_SEARCH for a in large}
            return Alternatives()
        return Alternatives(large, share)

    def composed(self, program: ProgramSearch, found: Sequence[OtherAlgorithm]) -> ProgramSearch | None:
        """Return the search of the program with the algorithms that pay; None where none does.

        Args:
            program: The program, searched together with the tasks of the algorithms.
        """
        call_s, tunable = program.call_s(), {task.key for task in program.tasks}
        why = {a.site.name: _why_not(a, call_s, tunable) for a in found}
        judged = [a for a in found if why[a.site.name] not in (NO_SCRIPTS, NOT_MEASURED)]
        seconds_of = {a.name: (a.gone_s(call_s), a.made_s(call_s)) for a in judged}
        self.ratios |= {name: gone_s / made_s for name, (gone_s, made_s) in seconds_of.items() if gone_s and made_s}
        pays = [a for a in found if not why[a.site.name]]
        why |= above_together(pays, call_s, self.bound, program.built.model)
        names = self.run.decide("algorithms", lambda: [name for name, reason in why.items() if not reason])
        self.left_out |= {a.name: why[a.site.name] for a in found if a.site.name not in names}
        chosen = {a.site: a.name for a in found if a.site.name in names}
        if not chosen:
            return None
        program.tell(Phase.VARIANTS)
        try:
            with self.run.ledger.counting(WorkKind.ALGORITHMS, program.name):
                composed = self.algorithms.compose(program.built, list(chosen))
        except MlirSchedError as error:
            self.left_out |= dict.fromkeys(chosen.values(), reason(str(error)))
            return None
        unusable = NOT_TIMED if composed.timing is None else self.bound.why_above(composed.model)
        if unusable:
            self.left_out |= dict.fromkeys(chosen.values(), unusable)
            return None
        return program.continued_on(composed)


def above_together(
    pays: Sequence[OtherAlgorithm], call_s: Mapping[str, float], bound: WeightBound, model: Model
) -> dict[str, str]:
    """Return why algorithms that pay are left out, by the names of their sites, where weights exceed a bound together.

    Those that save most time per byte come first.
    """
    further_bytes, why = 0, dict[str, str]()
    for each in sorted(pays, key=lambda a: -a.saved_s(call_s) / max(1, a.further_bytes)):
        if too_large := bound.why_above(model, further_bytes + each.further_bytes):
            why[each.site.name] = too_large
        else:
            further_bytes += each.further_bytes
    return why


def _shares(program: ProgramSearch, found: Sequence[OtherAlgorithm]) -> dict[str, float]:
    """Return the share of a program's time that sites may take, as far as known, by their names; 0 to 1.

    All tasks count with the best rates that any of them has reached: a task without a script takes far longer than it
    will.
    """
    call_s = program.reachable_s()
    whole_s = sum(task.weight * call_s.get(task.key, 0.0) for task in program.tasks)
    return {a.site.name: a.gone_s(call_s) / whole_s for a in found if a.gone.keys() <= call_s.keys()}


def _why_not(alternative: OtherAlgorithm, call_s: Mapping[str, float], tunable: Set[str]) -> str:
    """Return why an algorithm does not pay; empty if it does.

    Args:
        call_s: The seconds per call of tasks, by key.
        tunable: Keys of the tasks that can have scripts.
    """
    if any(task.dispatch is not None and task.key not in tunable for task in alternative.made):
        return NO_SCRIPTS
    if not alternative.keys & tunable <= call_s.keys():
        return NOT_MEASURED
    saved_s, gone_s = alternative.saved_s(call_s), alternative.gone_s(call_s)
    if saved_s > LEAST_GAIN * gone_s:
        return ""
    less = f"only {seconds(saved_s)} less" if saved_s > 0 else f"{seconds(-saved_s)} more"
    return f"its dispatches take {less} per run"
