"""Measures the gain of the module of dot-product instructions, one line of the default space, on bf16 and i8.

Each matrix multiplication is tuned twice with equal trials: with the default space, and with ``dot_product`` removed
from it. All figures are speed-ups over plain ``iree-compile``, ratios of interleaved runs with the 95 % interval; the
figures of IREE's own variants come from the same runs. f16 is included for comparison: AVX-512 without FP16 has no
dot-product instruction for it. Usage: ``python -m benchmarks hardware_specific [--trials 64] [--seed 0] [TYPE ...]``.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.figures.publishing import Publishing, gain, options_of, parsed
from benchmarks.figures.result_table import Cell, Columns, ResultColumn, ResultTable, Unit, figure
from benchmarks.operators.gains import what_won
from benchmarks.operators.shape_programs import Builder
from mlir_sched.pipeline import tune
from mlir_sched.space.space import Space
from mlir_sched.targets import detect_target
from mlir_sched.text import speedup
from mlir_sched.tuned_folder.result import TuneResult
from mlir_sched.tuning.options import TuneOptions

SHAPES = ((512, 512, 512), (128, 768, 3072))
"""Rows, columns and length of the reduction."""
RESULTS = {"bf16": "f32", "i8": "i32", "f16": "f32"}
"""Element type of the result by element type of the inputs."""


def matmul(rows: int, columns: int, reduction: int, kind: str) -> str:
    """Return a program that multiplies two matrices and sums in a wider type."""
    b = Builder()
    matrices = b.argument(rows, reduction, kind=kind), b.argument(reduction, columns, kind=kind)
    return b.program(b.named("matmul", matrices, (rows, columns), RESULTS[kind]))


def tuned(program: str, space: Space, trials: int, seed: int) -> TuneResult:
    """Return the result of tuning a program in a space, on one thread."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.mlir"
        model.write_text(program)
        options = TuneOptions(trials=trials, seed=seed, threads=1)
        return tune(model, Path(folder) / "tuned", options=options, space=space)


def described(result: TuneResult) -> str:
    """Return the speed-up of a tuned program with its variant, sketches and failures, as text."""
    failed = sum(sum((d.failures or {}).values()) for d in result.dispatches)
    return f"{speedup(result.program.tuned)} [{', '.join(what_won(result))}; {failed} failed]"


def results_table(found: Mapping[str, tuple[TuneResult, TuneResult]], seed: int, publishing: Publishing) -> ResultTable:
    """Return a table of results, given those without the module and with it by the name of the multiplication."""
    return publishing.table(
        name="narrow-types",
        question="gains",
        title="Dot-product instructions on bf16 and i8",
        threads=1,
        seeds=[seed],
        interleaving="Tuned and untuned code in turns",
        spread="95 % interval of the median",
        rows_are="matmul",
        columns=COLUMNS,
        rows=found.items(),
    )


def _gain(result: TuneResult) -> Cell:
    return gain(result.program.tuned, result.program.variant)


def _best_variant(result: TuneResult) -> Cell:
    variants = result.program.variants
    best = max(variants, key=lambda name: variants[name], default="")
    return figure(variants[best], note=best) if best else None


COLUMNS: Columns[tuple[TuneResult, TuneResult]] = {
    ResultColumn("untuned", Unit.SECONDS): lambda pair: pair[1].program.untuned.median_s,
    ResultColumn("best IREE variant", Unit.RATIO): lambda pair: _best_variant(pair[1]),
    ResultColumn("without `dot_product`", Unit.RATIO): lambda pair: _gain(pair[0]),
    ResultColumn("with it", Unit.RATIO): lambda pair: _gain(pair[1]),
}


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("types", nargs="*", help=f"of {', '.join(RESULTS)}; all by default")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    arguments, publishing = parsed(parser)
    unknown = sorted(set(arguments.types) - set(RESULTS))
    if unknown:
        parser.error(f"unknown type {unknown[0]}; known types: {', '.join(RESULTS)}")
    target = detect_target("llvm-cpu", 1)
    space, found = Space.default(target), dict[str, tuple[TuneResult, TuneResult]]()
    for kind in arguments.types or RESULTS:
        for shape in SHAPES:
            program = matmul(*shape, kind)
            without = tuned(program, space.remove("dot_product"), arguments.trials, arguments.seed)
            with_module = tuned(program, space, arguments.trials, arguments.seed)
            found[f"{kind} {'x'.join(map(str, shape))}"] = without, with_module
            variants = ", ".join(f"{name} {ratio:.2f}" for name, ratio in with_module.program.variants.items())
            scripts = ", ".join(f"{d.speedup:.2f} {d.sketch}" for d in without.dispatches if d.sketch)
            print(
                f"{kind} {'x'.join(map(str, shape))}: untuned {with_module.program.untuned.median_s * 1e3:.2f} ms\n"
                f"  IREE's variants: {variants}\n"
                f"  without: {described(without)}; its script: {scripts or 'none'}\n"
                f"  with:    {described(with_module)}",
                flush=True,
            )
    publishing.add(results_table(found, arguments.seed, publishing), target)
