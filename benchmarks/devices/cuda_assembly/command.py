"""How many legal candidates for CUDA compile and are assembled, and what the model says of the best; needs no GPU.

``python -m benchmarks cuda_assembly --records FILE.jsonl [--traces 500] [--target cuda:sm_80 cuda:sm_90] [MODEL ...]``.
Of every sketch, random legal candidates are drawn in equal parts from the models that have the sketch; equal traces are
compiled once. Each is compiled, assembled by ptxas for every target, and written as a line of ``FILE``; a run with the
same file goes on where the last one ended. Goal: 95 % of the candidates without an error or a warning, and no spills in
the best by the model. The second table has the best of each model beside the untuned code.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.devices.cuda_assembly.candidates import Draws, Program, compiled, draw, program_of
from benchmarks.devices.cuda_assembly.records import UNTUNED, append_entries, read_entries
from benchmarks.devices.cuda_assembly.tables import MODELS, MODULES, model_rows, module_rows, results_tables
from benchmarks.figures.publishing import options_of, parsed
from benchmarks.figures.tables import markdown_table
from benchmarks.folders import MODELS as PROGRAMS
from mlir_sched.errors import UserError
from mlir_sched.space.space import Space
from mlir_sched.targets import absent_target
from mlir_sched.targets.target import Target
from mlir_sched.trace import Trace

NAMES = (
    *("matmul_256", "matmul_1024", "matmul_1024_f16", "batch_matmul", "matmul_bias_relu", "transposed_batch_matmul"),
    *("vecmat_4096", "conv1d", "conv2d", "depthwise_conv2d", "dilated_conv2d", "grouped_conv2d"),
    *("softmax", "layernorm", "norm", "column_sums", "elementwise_1m"),
)


def complete(
    path: Path, programs: Sequence[Program], drawn: Sequence[Draws], architectures: Sequence[str], timeout_s: float
) -> None:
    """Add to a file of records what is missing: the untuned code of every program, and every distinct legal draw."""
    known = {name for name, entry in read_entries(path).items() if not entry.ran_out_of_time}
    untuned: list[Trace | None] = [None]
    work = [(each, UNTUNED, untuned) for each in programs if (each.name, UNTUNED, UNTUNED) not in known]
    for draws in drawn:
        distinct = {trace.key: trace for trace in draws.legal}
        missing = [trace for name, trace in distinct.items() if (draws.program.name, draws.sketch, name) not in known]
        work.append((draws.program, draws.sketch, [*missing]))
    left, since_s = sum(len(traces) for *_, traces in work), time.monotonic()
    for program, sketch, traces in work:
        for _ in append_entries(path, compiled(program, sketch, traces, architectures, timeout_s)) if traces else ():
            left -= 1
        print(f"{time.monotonic() - since_s:.0f} s: {program.name} {sketch}, {left} left", file=sys.stderr, flush=True)


def main() -> None:
    arguments, publishing = parsed(_parser())
    targets = [absent_target(name) for name in arguments.target]
    _require_alike(targets)
    models = arguments.models or [PROGRAMS / f"{name}.mlir" for name in NAMES]
    space = Space.default(targets[0])
    programs = [found for model in models if (found := program_of(model, space, targets[0]))]
    drawn = draw(programs, arguments.traces)
    every = [draws for sketch in drawn.values() for draws in sketch]
    complete(arguments.records, programs, every, [target.assembler for target in targets], arguments.timeout)
    entries = read_entries(arguments.records)
    for target in targets:
        print(f"\n{target.processor}; nothing was run, times are estimates\n")
        of_modules, of_models = [*module_rows(drawn, entries, target)], [*model_rows(programs, entries, target)]
        print(f"{markdown_table(MODULES, of_modules)}\n\n{markdown_table(MODELS, of_models)}")
        for table in results_tables(of_modules, of_models, target, publishing):
            publishing.add(table, target)


def _require_alike(targets: Sequence[Target]) -> None:
    """Refuse targets whose candidates are not the same code."""
    if len({(target.flags, target.gpu) for target in targets}) > 1:
        raise UserError("the targets are compiled for in different ways; give each a run and a file of its own")


def _parser() -> argparse.ArgumentParser:
    parser = options_of(__doc__)
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL", help="programs, by default of this folder")
    parser.add_argument("--records", type=Path, required=True, help="file of JSON lines; a run adds what is missing")
    parser.add_argument("--traces", type=int, default=500, help="legal draws per sketch, over all models together")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds that a compilation may take")
    parser.add_argument("--target", nargs="+", default=["cuda:sm_80", "cuda:sm_90"])
    return parser
