"""Tunes one random program and judges the result by NumPy: ``python -m benchmarks.fuzz.judge SEED FOLDER TRIALS``.

Writes one JSON object to standard output: the seed, what became of the program, and the failed candidates by class.
The tuned program is compiled and run as users do it, with ``iree-compile @flags.txt`` and ``iree-run-module``.
"""

import json
import sys
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from unittest.mock import patch

from benchmarks.fuzz.comparison import difference
from benchmarks.fuzz.programs import RandomProgram, random_program
from benchmarks.fuzz.public_route import PublicRouteError, compiled, outputs
from mlir_sched.database import RecordStore
from mlir_sched.database.record import Record
from mlir_sched.errors import FailureClass, MlirSchedError, UserError
from mlir_sched.pipeline import tune
from mlir_sched.runner import RunnerOptions
from mlir_sched.targets import detect_target
from mlir_sched.targets.target import Driver
from mlir_sched.tuned_folder.names import FLAGS
from mlir_sched.tuned_folder.result import DispatchResult, TuneResult
from mlir_sched.tuning.options import TuneOptions

SURPRISE = 2.0
"""Factor by which the reported speed-up of a script may lie above the interval of its record: other work on the machine
disturbs short sessions by tens of percent, and code that computes less than it should is faster by more."""


class Fate(StrEnum):
    """What becomes of a random program."""

    TUNED = "tuned, right"
    UNTUNED = "written as it is, right"
    REFUSED = "refused with a reason"
    REJECTED = "not compiled by IREE"
    MISCOMPILED = "IREE's own code is wrong"
    WRONG = "WRONG NUMBERS"
    UNPROVEN = "EMITTED WITHOUT A RECORD"
    INTERNAL = "INTERNAL ERROR"

    @property
    def is_fault(self) -> bool:
        """Whether this must not happen."""
        return self in (Fate.WRONG, Fate.UNPROVEN, Fate.INTERNAL)


@dataclass(frozen=True)
class Judgement:
    """What became of a program.

    Attributes:
        seed: Its seed.
        fate: What became of it.
        detail: The reason, or the fault.
        trials: Candidates tried.
        failures: Failed candidates by class.
    """

    seed: int
    fate: Fate
    detail: str = ""
    trials: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)


def judge(program: RandomProgram, folder: Path, *, seed: int, trials: int) -> Judgement:
    """Tune a program and return what became of it."""
    model = folder / "program.mlir"
    model.write_text(program.text)
    try:
        plain = compiled(model, detect_target("llvm-cpu", 1).flags, folder / "plain.vmfb")
        untuned = difference(program, outputs(plain, program, folder))
    except PublicRouteError as error:
        return Judgement(seed, Fate.REJECTED, str(error))
    try:
        result = tune_shortly(model, folder / "tuned", seed=seed, trials=trials)
    except UserError as error:
        return Judgement(seed, Fate.MISCOMPILED if untuned else Fate.REFUSED, str(error))
    except MlirSchedError as error:
        return Judgement(seed, Fate.INTERNAL, str(error))
    except Exception:
        return Judgement(seed, Fate.INTERNAL, traceback.format_exc())
    found = _judged(program, folder, Judgement(seed, Fate.TUNED, "", result.trials, result.failures), result)
    return (
        replace(found, fate=Fate.MISCOMPILED, detail=untuned) if untuned and found.fate is not Fate.INTERNAL else found
    )


def tune_shortly(model: Path, output: Path, *, seed: int, trials: int) -> TuneResult:
    """Tune a program with short sessions at the end: what is judged is no time."""
    final = RunnerOptions.final

    def short(driver: Driver, *, threads: int = 1, seed: int = 0) -> RunnerOptions:
        options = final(driver, threads=threads, seed=seed)
        return replace(options, racing=replace(options.racing, budget_s=0.1, min_pairs=6, min_slow_pairs=3))

    with patch.object(RunnerOptions, "final", short):
        return tune(model, output, options=TuneOptions(trials=trials, seed=seed, threads=1))


def _judged(program: RandomProgram, folder: Path, so_far: Judgement, result: TuneResult) -> Judgement:
    """Return what the result of a run is worth."""
    if FailureClass.INTERNAL_ERROR in result.failures:
        return replace(so_far, fate=Fate.INTERNAL, detail="a candidate met an internal error")
    if missing := unproven(result):
        return replace(so_far, fate=Fate.UNPROVEN, detail=missing)
    try:
        tuned = compiled(folder / "program.mlir", [f"@{folder / 'tuned' / FLAGS}"], folder / "tuned.vmfb")
        wrong = difference(program, outputs(tuned, program, folder))
    except PublicRouteError as error:
        return replace(so_far, fate=Fate.INTERNAL, detail=f"the emitted folder cannot be used: {error}")
    if wrong:
        return replace(so_far, fate=Fate.WRONG, detail=wrong)
    return so_far if any(each.symbol for each in result.dispatches) else replace(so_far, fate=Fate.UNTUNED)


def unproven(result: TuneResult) -> str:
    """Return an emitted script that no record of its store stands for; empty when there is none.

    A record stands for a script if it has the same sketch and decisions, its numbers are right, and the script is not
    reported as faster than the interval of the record's ratio times :data:`SURPRISE`.
    """
    with RecordStore.open(result.store, read_only=True) as store:
        for dispatch in result.dispatches:
            if dispatch.tuned is not None and not any(_stands(each, dispatch) for each in _records(store, dispatch)):
                reported = f"{dispatch.tuned.ratio:.2f} times as fast"
                return f"{dispatch.name}: {dispatch.what_changed} ({reported})"
    return ""


def _records(store: RecordStore, dispatch: DispatchResult) -> list[Record]:
    return [
        record for context in store.contexts(dispatch.task_key) for record in store.records(dispatch.task_key, context)
    ]


def _stands(record: Record, dispatch: DispatchResult) -> bool:
    """Say whether a record is that of the script of a dispatch, and as fast."""
    valid = record.outcome.valid
    if valid is None or record.trace is None or dispatch.tuned is None:
        return False
    same = record.trace.sketch == dispatch.sketch and record.trace.values == dict(dispatch.decisions or {})
    return bool(same and dispatch.tuned.ratio <= SURPRISE * valid.ratio_high)


if __name__ == "__main__":
    chosen = int(sys.argv[1])
    print(json.dumps(asdict(judge(random_program(chosen), Path(sys.argv[2]), seed=chosen, trials=int(sys.argv[3])))))
