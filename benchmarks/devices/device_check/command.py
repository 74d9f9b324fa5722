"""The first run on a device: what random candidates compute, then how fast tuned programs are; runs unattended.

``python -m benchmarks device_check --target cuda [--minutes 9] [--python PYTHON] [--markdown FILE] [--keep DIR]``.
First, random candidates of every sketch are compared with IREE's own code; after a third of the minutes, no further
program's are. Then programs are tuned, and compared with IREE's own code, with PyTorch and with the device's peak.
Nothing is fetched: the check runs where mlir-sched and IREE are installed. Ends with exit code 1 when a candidate
fails, or when a program could not be tuned.

Times of mlir-sched and PyTorch are not sampled in turns: PyTorch's are taken first, in a process of its own.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.devices.device_check.candidates import sample_spaces
from benchmarks.devices.device_check.report import Report
from benchmarks.devices.device_check.speeds import Speeds, tune_programs
from benchmarks.figures.publishing import options_of, parsed
from benchmarks.folders import path_of
from mlir_sched.targets import detect_target

NUMBERS_SHARE = 1 / 3
"""Part of the time after which no further program's candidates are sampled."""
SAMPLED = (
    *("matmul_96x120x72", "matmul_256", "matmul_1024_f16", "batch_matmul_8x64x96x128", "matmul_bias_relu"),
    *("transposed_batch_matmul", "vecmat_4096", "conv1d", "conv2d_34x34x32", "depthwise_conv2d", "grouped_conv2d"),
    *("softmax_256", "layernorm", "row_sum", "column_sums", "norm", "transpose", "elementwise_prime"),
)
"""Programs whose random candidates are compared with IREE's own code."""
TUNED = (
    *("matmul_1024", "matmul_1024_f16", "matmul_4096", "matmul_4096_f16"),
    *("batch_matmul", "conv2d", "softmax", "bert_layer"),
)
"""Programs that are tuned and compared with PyTorch."""


def main() -> int:
    start_s = time.monotonic()
    arguments, publishing = parsed(_parser())
    whole_s, seed = 60 * arguments.minutes, arguments.seed
    target = detect_target(arguments.target, arguments.threads)
    sampled = [path_of(name) for name in arguments.sample]
    for name in arguments.tune:
        path_of(name)
    until_s = start_s + NUMBERS_SHARE * whole_s
    numbers = sample_spaces(sampled, target, samples=arguments.candidates, seed=seed, until_s=until_s)
    report = Report(target, numbers, Speeds((), ()), time.monotonic() - start_s, seed, publishing)
    report.write(arguments.markdown, arguments.json)  # so that a run that is stopped leaves the numbers
    speeds = tune_programs(
        arguments.tune,
        target,
        arguments.target,
        threads=arguments.threads,
        python=arguments.python,
        until_s=start_s + whole_s,
        seed=seed,
        keep=arguments.keep,
    )
    report = replace(report, speeds=speeds, seconds=time.monotonic() - start_s)
    report.write(arguments.markdown, arguments.json)
    print(report.text)
    if speeds.speeds:
        publishing.add(report.results_table(), target)
    return int(numbers.failed > 0 or len(speeds.speeds) < len(arguments.tune))


def _parser() -> argparse.ArgumentParser:
    parser = options_of(__doc__)
    parser.add_argument("--target", default="cuda", help="the device, as for mlir-sched tune")
    parser.add_argument("--threads", type=int, help="threads of a CPU; a device decides by itself")
    parser.add_argument("--minutes", type=float, default=9.0, help="for everything")
    parser.add_argument("--candidates", type=int, default=3, help="random candidates per dispatch and sketch")
    parser.add_argument("--sample", nargs="*", default=SAMPLED, metavar="PROGRAM", help="whose candidates are sampled")
    parser.add_argument("--tune", nargs="*", default=TUNED, metavar="PROGRAM", help="programs that are tuned")
    parser.add_argument("--python", default="", help="a Python that has PyTorch, for a comparison")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the tuned folders, with their records, there")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--markdown", type=Path, help="write the tables there")
    return parser
