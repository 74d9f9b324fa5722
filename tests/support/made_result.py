"""Results of runs that were made up."""

from dataclasses import replace

from mlir_sched.outcome import LoadCost, Timing, Verdict
from mlir_sched.sampling import Value
from mlir_sched.tuned_folder.decision_worth import Ablation, Alternative, DecisionWorth, RelativeSpeed, SketchWorth
from mlir_sched.tuned_folder.result import (
    CurvePoint,
    DispatchResult,
    Loading,
    PredictedVariants,
    ProgramCurve,
    ProgramResult,
    Repair,
    TuneResult,
    Weights,
)
from mlir_sched.tuned_folder.transferred import OneShotResult, SourceResult, TransferResult


def timing(median_s: float, ratio: float = 1.0) -> Timing:
    return Timing(median_s, median_s, median_s, 20, ratio, ratio, ratio)


def alternative(cost: float, verdict: RelativeSpeed = RelativeSpeed.SLOWER, **changes: Value) -> Alternative:
    return Alternative(cost, cost - 0.05, cost + 0.05, verdict, changes)


ABLATION = Ablation(
    2.2,
    (
        DecisionWorth("unroll", 4, False, 5, 1, alternative(1.12, unroll=2, order="rows"), alternative(1.5, unroll=8)),
        DecisionWorth("lanes", 8, False, 3, 0, alternative(1.0, RelativeSpeed.SAME_CODE, lanes=16), None),
        DecisionWorth("order", "columns", False, 0, 0, None, None),
        DecisionWorth("tail", "mask", True, 0, 0, None, None),
        DecisionWorth("tile", (8, 4), False, 0, 2, None, None),
    ),
    (
        SketchWorth("dot <product>", 4, 0, alternative(1.3, tile=(8, 2))),
        SketchWorth("cache", 0, 0, None),
        SketchWorth("rows", 1, 2, alternative(1.4, tile=(4, 2))),
    ),
)
DISPATCH = DispatchResult("d_0", "", "", 1, timing(1e-3), timing(5e-4, 2.0), sketch="registers", ablation=ABLATION)
RESULT = TuneResult(
    model="model.mlir", target="llvm-cpu", threads=1, seed=0, trials=8, evaluated=8, seconds=30.0, run_seconds=120.0,
    phases={}, interrupted=False, left_out={}, dispatches=(DISPATCH,), output=None, store="", parameters=(),
    program=ProgramResult(timing(1e-3), timing(5e-4, 2.0), {"default": 1.0}, "default", "local-sync", Verdict.RIGHT),
    tunable_share=None, notes=(), model_accuracy=None, versions={},
    curves=(
        ProgramCurve("default", (CurvePoint(60.0, 0, 9.5e-4), CurvePoint(90.0, 8, 4.5e-4))),
        ProgramCurve("other", (CurvePoint(70.0, 0, 9e-2),)),
    ),
)  # fmt: skip
LOADING = Loading(LoadCost(0.3, 100 * 2**20, 90 * 2**20), LoadCost(1.2, 190 * 2**20, 95 * 2**20))
"""Loading that takes far longer and, at its peak, far more memory."""
WEIGHTS = Weights(90 * 2**20, 92 * 2**20)
WHOLE = replace(
    RESULT,
    predicted=PredictedVariants(9, ("channels_last", "data-tiling"), {"channels_last": 1.5}),
    transfer=TransferResult(
        3, 2, (SourceResult("d_1", "linalg.matmul 4x4x4", "your store", "a CPU", 1, 96),) * 2, 0.71, 2
    ),
    one_shot=OneShotResult(2, 1, {"templates": 2, "cost model": 4}, 0.5),
    program=replace(
        RESULT.program, repair=Repair(("strided",), "output 0 differs", 2e-3), loading=LOADING, weights=WEIGHTS
    ),
)
"""A result with every part that a result can have."""
