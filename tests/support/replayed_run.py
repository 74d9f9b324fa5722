"""A search over two synthetic tasks with replayed measurements, run as a program so that it can be killed.

Usage: ``python replayed_run.py STORE LOG TRIALS [BEGIN_FROM]``; it begins from templates and a store, or from nothing.
With 0 trials there is no search, and templates are tried in any case.
Every candidate that is measured is appended to LOG at once.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from plans import flagged

from mlir_sched.database import RecordStore
from mlir_sched.errors import Failure, FailureClass
from mlir_sched.evaluation.evaluator import Evaluator, Evaluators
from mlir_sched.outcome import Outcome, Timing, Verdict
from mlir_sched.payload import Dispatch, LinalgOp, LinearExpr, Operand, OpKind, TensorSpec
from mlir_sched.program.profile import ProgramProfile
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.search import EvolutionaryOptions
from mlir_sched.space.space import Space
from mlir_sched.targets.target import LOCAL, Target
from mlir_sched.tasks import Model
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace
from mlir_sched.tuning.callbacks import Interruption
from mlir_sched.tuning.one_shot import OneShotProgram, without_search
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.program_search import ProgramSearch
from mlir_sched.tuning.progress import Phase, SearchState
from mlir_sched.tuning.search_method import SearchMethod
from mlir_sched.tuning.transfer import TransferPlan
from mlir_sched.tuning.tuning_run import TuningRun
from mlir_sched.tuning.variant_search import SearchResult, VariantSearch

TARGET = Target(
    "llvm-cpu", "llvm-cpu", LOCAL, (), "a machine", "3.13.0", "a CPU", 1, 64, 32, 32768, 1 << 20, 1 << 25, 32768
)


QUICK = EvolutionaryOptions(population=64, generations=2)
METHOD = SearchMethod(QUICK)
"""A population that is enough where the order of rounds is looked at, and not what they find."""


def matmul_dispatch(m: int, n: int, k: int, element: str = "f32") -> Dispatch:
    """Return fill + matmul as plain data."""

    def operand(shape: tuple[int, ...], loops: tuple[int, ...], rank: int, producer: int | None = None) -> Operand:
        expressions = tuple(LinearExpr(tuple(int(d == loop) for d in range(rank))) for loop in loops)
        return Operand(TensorSpec(shape, element), expressions, producer)

    fill = LinalgOp(0, "linalg.fill", OpKind.FILL, ("parallel",) * 2, (m, n), (), (operand((m, n), (0, 1), 2),), ())
    matmul = LinalgOp(
        1,
        "linalg.matmul",
        OpKind.CONTRACTION,
        ("parallel", "parallel", "reduction"),
        (m, n, k),
        (operand((m, k), (0, 2), 3), operand((k, n), (2, 1), 3)),
        (operand((m, n), (0, 1), 3, producer=0),),
        ("arith.mulf", "arith.addf"),
    )
    return Dispatch((fill, matmul), (1,))


def task_of(name: str, dispatch: Dispatch) -> Task:
    """Return a task that can be searched but not compiled."""
    key = hashlib.sha256(name.encode()).hexdigest()
    return Task(key, name, 1, "", (), (), dispatch, "", ())


class Heard:
    """Keeps the texts of internal errors."""

    def __init__(self) -> None:
        self.internal_errors: list[str] = []

    def on_phase(self, phase: Phase, state: SearchState, dispatch: str = "") -> None:
        del phase, state, dispatch

    def on_internal_error(self, text: str) -> None:
        self.internal_errors.append(text)


def program_search(
    options: TuneOptions,
    store: RecordStore,
    tasks: Sequence[Task],
    *,
    target: Target = TARGET,
    start_from: Sequence[Trace] = (),
    profile: ProgramProfile | None = None,
    heard: Heard | None = None,
    method: SearchMethod = METHOD,
    transfer: TransferPlan | None = None,
) -> ProgramSearch:
    """Return the search over the tasks of a program that has no other variants, or what takes its place."""
    built = BuiltVariant(flagged("default"), Model("model.mlir", (), tuple(tasks), ()), b"", None, (), profile)
    space, start = Space.default(target), time.monotonic()
    method, made_by = (without_search(method), OneShotProgram) if options.is_one_shot else (method, ProgramSearch)
    run = TuningRun.of(
        options, target, space, store, [built], start=start, method=method, start_from=start_from, transfer=transfer
    )
    return made_by(run, built, heard or Heard())


def searched(search: ProgramSearch, evaluator: Evaluator) -> ProgramSearch:
    """Return a search that had the whole budget."""
    for work in search.work(search.run.budget.rest(elsewhere=0)):
        work.run(evaluator)
    return search


def turns_of(
    search: VariantSearch, open_evaluator: Callable[[BuiltVariant], AbstractContextManager[Evaluator]]
) -> SearchResult:
    """Return what a search over variants found that went on until its end, or until the evaluator was interrupted."""
    with Evaluators(open_evaluator) as evaluators, Interruption(search.run.clock) as interruption:
        for program, work in search.work():
            with search.run.ledger.counting(work.kind, work.task.key, work.count):
                work.run(evaluators.of(program.built))
    return search.result(interrupted=interruption.happened)


class HashedMeasurements(Evaluator):
    """Outcomes that depend on the script alone; one in eight is a failure."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def untuned(self, task: Task, following: Sequence[Task] = ()) -> Outcome:
        del following
        return Outcome(Timing(1e-3, 1e-3, 1e-3, 9, 1.0, 1.0, 1.0), None, f"untuned {task.name}", verdict=Verdict.RIGHT)

    def evaluate(
        self, task: Task, scripts: Sequence[str], known: Mapping[str, Outcome]
    ) -> Iterator[tuple[int, Outcome]]:
        del known
        for index, script in enumerate(scripts):
            digest = hashlib.sha256((task.key + script).encode()).hexdigest()
            time.sleep(0.002)
            with self._log.open("a") as log:
                log.write(f"{os.getpid()} {digest}\n")
            number = int(digest[:8], 16)
            if number % 8 == 0:
                yield index, Outcome(None, Failure(FailureClass.WRONG_RESULT, "planted"), digest)
            else:
                ratio = 0.5 + (number % 1000) / 1000
                yield (
                    index,
                    Outcome(
                        Timing(1e-3 / ratio, 1e-3, 1e-3, 9, ratio, ratio, ratio), None, digest, verdict=Verdict.RIGHT
                    ),
                )


def main(store_path: str, log: str, trials: int, given: str = "off") -> None:
    tasks = [task_of("first", matmul_dispatch(64, 96, 32)), task_of("second", matmul_dispatch(128, 64, 48))]
    with RecordStore.open(store_path) as store:
        templates = given != "off" or not trials
        options = TuneOptions(trials=trials, round_size=8, seed=3, templates=templates, transfer=given)
        plan = TransferPlan.of(options, store, None, 0, lambda note: print(note, file=sys.stderr), fresh=False)
        search = searched(program_search(options, store, tasks, transfer=plan), HashedMeasurements(Path(log)))
        print(f"{search.tried} tried, {sum(s.measured for s in search.searches)} measured")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
