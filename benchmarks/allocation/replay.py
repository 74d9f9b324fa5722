"""The replay of a recorded run under a budget: today's rules decide, recorded work takes its time, nothing is run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.allocation.candidates import RecordedOrder, RecordedSpace, RecordedTasks
from benchmarks.allocation.courses import Quiet, with_scripts_s
from benchmarks.allocation.programs import RecordedPrograms
from benchmarks.allocation.recorded import RecordedPlan, RecordedRun, RecordedTask
from benchmarks.allocation.virtual import VirtualClock, VirtualStore
from mlir_sched import TuneOptions
from mlir_sched.evaluation.evaluator import Evaluators
from mlir_sched.models import RandomModel
from mlir_sched.program.variants.choosing import build_variants
from mlir_sched.search import GradientScheduler, TaskScheduler
from mlir_sched.tuning.algorithm_choice import AlgorithmChoice
from mlir_sched.tuning.program_search import ProgramSearch
from mlir_sched.tuning.search_method import SearchMethod
from mlir_sched.tuning.tuning_run import TuningRun
from mlir_sched.tuning.variant_choice import VariantChoice
from mlir_sched.tuning.variant_search import VariantSearch


@dataclass(frozen=True)
class Replayed:
    """What a replayed run came to.

    Attributes:
        plan: Name of the plan that it ends with.
        final_s: Seconds per call of the program that it emits, with the times of the recording.
        over_best: That time over the best that the recorded plans and candidates have, >= 1 but for rounding.
        tried: Candidates tried.
        seconds: Seconds of the whole run.
    """

    plan: str
    final_s: float
    over_best: float
    tried: int
    seconds: float


def replay(
    run: RecordedRun,
    path: Path,
    *,
    minutes: float,
    order: int = 0,
    speed: float = 1.0,
    scheduler: TaskScheduler | None = None,
) -> Replayed:
    """Replay a run.

    Args:
        minutes: Minutes of the run (``--minutes``), on the clock of the replay.
        order: The order of the candidates of each task; 0 is that of the recording.
        speed: Seconds that pass for each recorded second, of work and of programs.
        scheduler: Chooses the task of each round; the default of ``tune`` by default.
    """
    clock, tasks = VirtualClock(speed), RecordedTasks(run, order)
    with clock.instead_of_the_machines():
        return _replayed(RecordedPrograms.of(tasks, clock, path), minutes, scheduler or GradientScheduler())


def _replayed(programs: RecordedPrograms, minutes: float, scheduler: TaskScheduler) -> Replayed:
    run, clock, path, target = programs.run, programs.clock, programs.source.path, programs.source.target
    options, store = TuneOptions(minutes=minutes, threads=run.threads), VirtualStore()
    choice = VariantChoice.of(path, target, options, store, 0.0)
    variants = build_variants(programs, choice)
    choice.keep()
    space = RecordedSpace(programs.tasks)
    method = SearchMethod(RecordedOrder, RandomModel, scheduler)
    tuning = TuningRun.of(
        options,
        target,
        space,
        store,
        variants.built,
        start=0.0,
        method=method,
        design=space.design,
        ledger=choice.ledger,
    )
    with Evaluators(programs.evaluator) as evaluators:
        search = VariantSearch.of(
            tuning,
            variants.built,
            Quiet(_fail),
            programs.interim,
            AlgorithmChoice(tuning, programs),
            variants.dominant,
            programs.values(tuning.budget.whole_s),
            programs.profiled,
        )
        for program, work in search.work():
            work.run(evaluators.of(program.built))
    found = search.result(interrupted=False)
    _finish(programs, tuning, found.best)
    untuned_s = [built.call_s for built in variants.built if built.timing is not None]
    final_s = min(_emitted_s(programs, found.best), *untuned_s) / clock.speed
    return Replayed(found.best.name, final_s, final_s / best_s(run), found.tried, clock.now_s)


def _emitted_s(programs: RecordedPrograms, best: ProgramSearch) -> float:
    """Return the seconds per call of a program with the best scripts of its search, on the clock of the replay."""
    tasks = best.built.model.tasks
    tuned = {search.task.key: search.history for search in best.searches}
    saved_s = sum(
        t.weight * (tuned[t.key].untuned.median_s - tuned[t.key].seconds_per_call()) for t in tasks if t.key in tuned
    )
    known_s = programs.untuned_s(tasks)
    return with_scripts_s(best.built.call_s, known_s, known_s - saved_s)


def _finish(programs: RecordedPrograms, tuning: TuningRun, best: ProgramSearch) -> None:
    """Let the seconds pass that the end of a run takes: choices as far as there is time, reports, emission.

    How many choices a run makes is replayed in seconds and not in their outcomes: what a choice gains is not recorded.
    """
    end, clock = programs.run.end, programs.clock
    tuned = [search for search in best.searches if search.history.records]
    build_s = {plan.name: plan.build_s for plan in programs.run.plans}
    emission_s = end.emission_s * build_s[best.built.variant.plan.base.name] / build_s[end.plan]
    reports_s = end.report_s * len(tuned)
    left_s = tuning.budget.whole_s - clock.now_s - clock.speed * (emission_s + reports_s)
    clock.works(min(end.choice_s * len(tuned), max(0.0, left_s / clock.speed)))
    clock.works(reports_s + emission_s)


def best_s(run: RecordedRun) -> float:
    """Return the seconds per call of the best program that the recorded plans and candidates make."""
    reached = {task.key: reached_s(run.with_course(task)) for task in run.tasks}
    untuned = {task.key: task.untuned_s or 0.0 for task in run.tasks}
    return min(_best_of(plan, reached, untuned) for plan in run.plans if plan.call_s is not None)


def _best_of(plan: RecordedPlan, reached: Mapping[str, float], untuned: Mapping[str, float]) -> float:
    """Return the best seconds per call of a plan, with the algorithms that pay."""
    assert plan.call_s is not None
    untuned_s = sum(call.weight * untuned[call.key] for call in plan.tasks)
    tuned_s = with_scripts_s(plan.call_s, untuned_s, sum(call.weight * reached[call.key] for call in plan.tasks))
    saved_s = [
        sum(calls * reached[key] for key, calls in each.gone.items())
        - sum(made.weight * reached[made.key] for made in each.made)
        for each in plan.algorithms
    ]
    return tuned_s - sum(each for each in saved_s if each > 0)


def reached_s(task: RecordedTask) -> float:
    """Return the seconds per call of the fastest recorded code of a task; 0 where none was measured."""
    return (task.untuned_s or 0.0) / max([1.0, *(each.ratio for each in task.candidates if each.ratio is not None)])


def _fail(text: str) -> None:
    """End a replay that meets an internal error."""
    raise RuntimeError(text)
