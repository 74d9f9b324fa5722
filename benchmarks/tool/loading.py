"""What loading a model takes, plain and in every way that rewrites offer: seconds, and resident memory of the process.

``python -m benchmarks loading MODEL --parameters model=weights.irpa``; every program has processes of its own.
"""

import argparse
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.table import Table

from mlir_sched.outcome import LoadCost
from mlir_sched.program.building import build_variant, try_variant
from mlir_sched.program.loading import load_cost
from mlir_sched.program.plan import Plan
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.variants.rewritten import rewriting
from mlir_sched.runner import RunnerOptions
from mlir_sched.targets import detect_target
from mlir_sched.targets.target import Target
from mlir_sched.tensors.parameters import ParameterFile, parameter_files
from mlir_sched.text import console, mebibytes, seconds, table


def main() -> None:
    """Print a row per program, and a line per variant that cannot be loaded."""
    arguments = _parser().parse_args()
    target, weights = detect_target("llvm-cpu", arguments.threads), parameter_files(arguments.parameters)
    options = RunnerOptions.for_device(target.driver, threads=target.cores)
    plain = build_variant(arguments.model, target, Variant(Plan()), weights)
    shown = table("program", ">seconds", ">most memory", ">memory then", ">most / plain", ">then / plain")
    baseline = None
    for built in [plain, *_variants(arguments.model, target, weights, plain, arguments.variants)]:
        cost = _median([load_cost(options, plain.model, built.compiled()) for _ in range(arguments.repeat)])
        baseline = baseline or cost
        _add(shown, built.variant.name, cost, baseline)
    console().print(shown)


def _variants(
    model: Path, target: Target, weights: tuple[ParameterFile, ...], plain: BuiltVariant, names: Sequence[str]
) -> Iterator[BuiltVariant]:
    """Yield the rewritten variants of a model, those named or all; print why others do not compile."""
    with rewriting(model, target) as rewritten:
        found = rewritten().variants
    for variant in found:
        if names and variant.name not in names:
            continue
        attempt = try_variant(model, target, variant, weights, plain.model)
        if attempt.built is None:
            print(f"{variant.name}: {attempt.why}")
        else:
            yield attempt.built


def _median(costs: Sequence[LoadCost]) -> LoadCost:
    """Return the medians of what several loads took."""
    peaks, residents = [cost.peak_bytes for cost in costs], [cost.resident_bytes for cost in costs]
    return LoadCost(
        statistics.median(cost.seconds for cost in costs),
        int(statistics.median(peaks)),
        int(statistics.median(residents)),
    )


def _add(shown: Table, name: str, cost: LoadCost, plain: LoadCost) -> None:
    shown.add_row(
        name,
        seconds(cost.seconds),
        mebibytes(cost.peak_bytes),
        mebibytes(cost.resident_bytes),
        f"{cost.peak_bytes / plain.peak_bytes:.2f}",
        f"{cost.resident_bytes / plain.resident_bytes:.2f}",
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks loading", description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--parameters", action="append", default=[], help="scope=path of a file with weights")
    parser.add_argument("--variants", nargs="*", default=[], help="names of variants; all by default")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3, help="loads of each program; medians are shown")
    return parser
