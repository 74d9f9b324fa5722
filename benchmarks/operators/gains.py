"""Tunes each model of benchmarks/models with several seeds and prints the speed-up over plain iree-compile.

Speed-ups are ratios of interleaved medians through the public route (emitted flags, plain ``iree-compile``), with the
95 % interval of the ratio. Usage: ``python -m benchmarks gains [--trials 64] [--seeds 5] [--threads 1] [MODEL ...]``,
or ``--target vulkan --trials 24``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path

from benchmarks.folders import MODELS
from mlir_sched.pipeline import tune
from mlir_sched.text import speedup
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--target", default="llvm-cpu", choices=sorted(GOALS))
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the results there")
    arguments = parser.parse_args()
    goals = GOALS[arguments.target]
    models = arguments.models or [MODELS / f"{name}.mlir" for name in goals]
    print(f"{'model':24} {'seed':>4} {'untuned':>11} {'tuned':>11} {'speed-up':>24} {'seconds':>8}  variant / sketches")
    results = []
    for model in models:
        ratios = []
        for seed in range(arguments.seeds):
            options = TuneOptions(
                target=arguments.target, trials=arguments.trials, seed=seed, threads=arguments.threads
            )
            with tempfile.TemporaryDirectory() as folder:
                result = tune(model, folder, options=options)
            results.append(result.to_json())
            timing, untuned = result.program.tuned, result.program.untuned
            how = ", ".join([result.program.variant, *(d.sketch for d in result.dispatches if d.sketch)])
            print(
                f"{model.stem:24} {seed:4} {untuned.median_s * 1e3:8.4f} ms {timing.median_s * 1e3:8.4f} ms "
                f"{speedup(timing):>24} {result.seconds:8.1f}  {how}",
                flush=True,
            )
            ratios.append(timing.ratio)
        goal = goals.get(model.stem)
        met = "" if goal is None else f", goal {goal} met by {sum(r >= 0.99 * goal for r in ratios)} of {len(ratios)}"
        print(f"{model.stem:24} median {statistics.median(ratios):.2f}{met}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
