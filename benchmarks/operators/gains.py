"""Tunes each model of benchmarks/models with several seeds and prints the speed-up over plain iree-compile.

Speed-ups are ratios of interleaved medians through the public route (emitted flags, plain ``iree-compile``), with the
95 % interval of the ratio. Usage: ``python -m benchmarks gains [--trials 64] [--seeds 5] [--threads 1] [MODEL ...]``,
or ``--target vulkan --trials 24``.
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.figures.publishing import Publishing, options_of, parsed
from benchmarks.figures.result_table import Better, Columns, Figure, ResultColumn, ResultTable, Unit, figure
from benchmarks.folders import MODELS
from mlir_sched.pipeline import tune
from mlir_sched.targets import detect_target
from mlir_sched.text import speedup
from mlir_sched.tuned_folder.result import TuneResult
from mlir_sched.tuning.options import TuneOptions

GOALS = {
    "llvm-cpu": {
        "matmul_1024": 1.35,
        "matmul_1000": 1.7,
        "vecmat_4096": 5.0,
        "layernorm": 2.5,
        "softmax": 1.8,
        "batch_matmul": 1.0,
    },
    "vulkan": {
        "matmul_256": 1.0,
        "matmul_96x120x72": 1.0,
        "batch_matmul_8x64x96x128": 1.0,
        "matmul_bias_relu": 1.0,
        "elementwise_1m": 1.3,
        "elementwise_prime": 1.3,
        "conv2d_34x34x32": 20.0,
        "depthwise_conv2d": 1.0,
        "row_sum": 1.0,
        "column_sums": 1.0,
        "softmax_256": 1.0,
        "layernorm": 1.0,
        "transpose": 1.0,
    },
}
"""Expected speed-ups: on one thread of a Zen 4 core within 64 trials, on Mesa's software device within 24."""


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--target", default="llvm-cpu", choices=sorted(GOALS))
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the results there")
    arguments, publishing = parsed(parser)
    models = arguments.models or [MODELS / f"{name}.mlir" for name in GOALS[arguments.target]]
    print(f"{'model':24} {'seed':>4} {'untuned':>11} {'tuned':>11} {'speed-up':>24} {'seconds':>8}  variant / sketches")
    results = {model.stem: tuned_by_seeds(model, arguments) for model in models}
    if arguments.json:
        every = [result.to_json() for of_model in results.values() for result in of_model]
        arguments.json.write_text(json.dumps(every, indent=1))
    publishing.add(results_table(results, arguments, publishing), detect_target("llvm-cpu", arguments.threads))


def tuned_by_seeds(model: Path, arguments: argparse.Namespace) -> list[TuneResult]:
    """Tune a model with every seed, print a line for each and one for all, and return the results."""
    results = []
    for seed in range(arguments.seeds):
        options = TuneOptions(target=arguments.target, trials=arguments.trials, seed=seed, threads=arguments.threads)
        with tempfile.TemporaryDirectory() as folder:
            result = tune(model, folder, options=options)
        results.append(result)
        timing, untuned = result.program.tuned, result.program.untuned
        print(
            f"{model.stem:24} {seed:4} {untuned.median_s * 1e3:8.4f} ms {timing.median_s * 1e3:8.4f} ms "
            f"{speedup(timing):>24} {result.seconds:8.1f}  {', '.join(what_won(result))}",
            flush=True,
        )
    ratios = [result.program.tuned.ratio for result in results]
    goal = GOALS[arguments.target].get(model.stem)
    met = "" if goal is None else f", goal {goal} met by {sum(r >= 0.99 * goal for r in ratios)} of {len(ratios)}"
    print(f"{model.stem:24} median {statistics.median(ratios):.2f}{met}", flush=True)
    return results


def what_won(result: TuneResult) -> list[str]:
    """Return the variant of the emitted program and the sketches of its scripts."""
    return [result.program.variant, *(dispatch.sketch for dispatch in result.dispatches if dispatch.sketch)]


def results_table(
    results: Mapping[str, Sequence[TuneResult]], arguments: argparse.Namespace, publishing: Publishing
) -> ResultTable:
    """Return the gains of some models, each tuned with every seed, as a table of results."""
    return publishing.table(
        name=f"gains-{arguments.target}-{arguments.threads}-threads-{arguments.trials}-trials",
        question="gains" if arguments.target == "llvm-cpu" else "devices",
        title=f"Gains on {arguments.target}, {arguments.trials} trials",
        threads=arguments.threads,
        seeds=tuple(range(arguments.seeds)),
        interleaving="Tuned and untuned code in turns",
        spread="least and most of the seeds, for one seed the 95 % interval of timing",
        rows_are="model",
        columns=COLUMNS,
        rows=results.items(),
    )


def _speedup(results: Sequence[TuneResult]) -> Figure:
    timings = [result.program.tuned for result in results]
    ratios = [timing.ratio for timing in timings]
    ends = (min(ratios), max(ratios)) if len(ratios) > 1 else (timings[0].ratio_low, timings[0].ratio_high)
    return figure(statistics.median(ratios), *ends)


COLUMNS: Columns[Sequence[TuneResult]] = {
    ResultColumn("untuned", Unit.SECONDS): lambda seeds: statistics.median(s.program.untuned.median_s for s in seeds),
    ResultColumn("speed-up", Unit.RATIO, Better.ABOVE): _speedup,
    ResultColumn("seconds", Unit.NUMBER): lambda seeds: statistics.median(seed.seconds for seed in seeds),
    ResultColumn("what won"): lambda seeds: ", ".join(dict.fromkeys(name for seed in seeds for name in what_won(seed))),
}
