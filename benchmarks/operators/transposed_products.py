"""What a product loses that writes or reads transposed: tuned with equal trials as its plain twin, timed in turns.

``python -m benchmarks transposed_products [--trials 48] [--seed 0] [--threads 1] [--rounds 20]``. Ratios are times of
the tuned transposed program over those of the tuned plain program, whole calls, with the 95 % interval; 1 is no loss.
"""

import math
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.figures.publishing import Publishing, options_of, parsed
from benchmarks.figures.result_table import Columns, Figure, ResultColumn, ResultTable, Unit, figure
from benchmarks.figures.sampling import Samples, TimedWay, interleave, ratio
from benchmarks.figures.tables import print_table
from benchmarks.operators.comparison import Comparison, Setting
from benchmarks.operators.programs import TUNED
from benchmarks.operators.shape_programs import Builder
from benchmarks.operators.shapes import ADD_RELU
from benchmarks.operators.table import operator_of_file
from mlir_sched.runner.cores import choose_cores
from mlir_sched.targets import detect_target

SIZES = ((196, 116, 116), (784, 58, 58), (256, 256, 256))
"""Rows, columns and length of the reduction: of 1x1 convolutions of small networks, and sizes that vectors divide.

Rows are the pixels of a square image.
"""
PLAIN = "plain"
BORDER = 1
"""Pixels around an image that is cut out of a larger one, whose rows are then no single loop in memory."""
FORMS = {
    PLAIN: ("m k, k n -> m n", "m, n"),
    "transposed by the epilogue": ("m k, k n -> m n", "n, m"),
    "transposed by the product": ("m k, n k -> n m", "n, m"),
    "rows read transposed": ("k m, k n -> m n", "m, n"),
    "columns read transposed": ("m k, n k -> m n", "m, n"),
    "channels first": ("k m, n k -> n m", "n, m"),
    "image": ("h w k, n k -> h w n", "h, w, n"),
    "channels-first image": ("k h w, n k -> h w n", "h, w, n"),
}
"""The contraction, and the order in which the epilogue stores, by name."""


def program(sizes: tuple[int, int, int], form: str) -> str:
    """Return max(A B + bias, 0) in a form."""
    spec, stored = FORMS[form]
    rows, columns, summed = sizes
    extents = {"h": math.isqrt(rows), "w": math.isqrt(rows), "m": rows, "n": columns, "k": summed}
    b = Builder()
    left, right = (part.split(" ") for part in spec.split(" -> ")[0].split(", "))
    borders = [BORDER * (loop in "hw") for loop in left]
    whole = b.argument(*(extents[loop] + 2 * border for loop, border in zip(left, borders, strict=True)))
    pixels = b.part(whole, borders, [extents[loop] for loop in left]) if any(borders) else whole
    made = b.contract(spec, pixels, b.argument(*(extents[loop] for loop in right)))
    order = ", ".join(spec.split(" -> ")[1].split(" "))
    bias = b.argument(extents["n"])
    loops = ", ".join(loop for loop in extents if loop in order)
    return b.program(b.map([(made, order), (bias, "n")], ADD_RELU, at=stored, loops=loops))


def sampled(sizes: tuple[int, int, int], setting: Setting, folder: Path) -> dict[str, Samples]:
    """Return the samples of every form's tuned program, taken in turns."""
    (seed,) = setting.seeds
    with ExitStack() as stack:
        owners: dict[TimedWay, tuple[Comparison, TimedWay]] = {}
        for form in FORMS:
            path = folder / f"{'x'.join(map(str, sizes))}-{form.replace(' ', '-')}.mlir"
            path.write_text(program(sizes, form))
            (work := path.with_suffix("")).mkdir()
            comparison = Comparison(operator_of_file(path), setting, work, seed)
            comparison.start(stack)
            (way,) = (each for each in comparison.ways if each.label == TUNED and not each.empty)
            owners[replace(way, detail=form)] = comparison, way
        taken = interleave(
            list(owners),
            lambda way: owners[way][0].sample(owners[way][1]),
            rounds=setting.rounds,
            patience_s=setting.patience_s,
            rng=np.random.default_rng(seed),
        )
    return {samples.timed.detail: samples for samples in taken}


def results_table(
    found: Mapping[tuple[int, int, int], Mapping[str, Samples]], setting: Setting, publishing: Publishing
) -> ResultTable:
    """Return a table with a row per size: the plain program's time, and the ratio of every other form to it."""
    columns: Columns[Mapping[str, Samples]] = {
        ResultColumn(PLAIN, Unit.SECONDS): lambda forms: forms[PLAIN].interval.median,
        **{ResultColumn(form, Unit.RATIO): partial(_over_plain, form) for form in FORMS if form != PLAIN},
    }
    return publishing.table(
        name="transposed-products",
        question="operators",
        title="Products that write or read transposed",
        threads=setting.target.cores,
        seeds=setting.seeds,
        interleaving="The tuned programs of all forms in turns",
        spread="95 % interval",
        rows_are="rows x columns x reduction",
        columns=columns,
        rows=[("x".join(map(str, sizes)), forms) for sizes, forms in found.items()],
    )


def _over_plain(form: str, forms: Mapping[str, Samples]) -> Figure:
    against = ratio(forms[form], forms[PLAIN])
    return figure(against.median, against.low, against.high)


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("--trials", type=int, default=48, help="per program")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20, help="samples per program")
    arguments, publishing = parsed(parser)
    target, cores = detect_target("llvm-cpu", arguments.threads), choose_cores(arguments.threads)
    setting = Setting(target, cores, (), arguments.trials, (arguments.seed,), arguments.rounds, 0.02, 120.0, 300.0)
    found = {}
    for sizes in SIZES:
        with tempfile.TemporaryDirectory(prefix="mlir-sched-", ignore_cleanup_errors=True) as folder:
            found[sizes] = sampled(sizes, setting, Path(folder))
        print_table(results_table({sizes: found[sizes]}, setting, publishing))
    publishing.add(results_table(found, setting, publishing), target)
