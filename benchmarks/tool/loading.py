"""What loading models takes, plain and in every way that rewrites offer: seconds, and resident memory of the process.

``python -m benchmarks loading MODEL... --encode``; weights are in ``weights.irpa`` beside a model. Every program has
processes of its own. With ``--encode`` each program is also loaded with its weights encoded, with ``--algorithms`` one
is also loaded with every site computed by its other algorithm.
"""

import argparse
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.figures.publishing import Publishing, options_of, parsed
from benchmarks.figures.result_table import Columns, ResultColumn, ResultTable, Unit
from mlir_sched.compiler import compile_to_bytes
from mlir_sched.outcome import LoadCost
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.program.building import build_variant, try_variant
from mlir_sched.program.encoding import FROM_FLOW, encoded_program
from mlir_sched.program.loading import load_cost
from mlir_sched.program.plan import Plan
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.variants.rewritten import RewrittenVariants, planned_variant, rewriting
from mlir_sched.program.whole_program import CompiledModel
from mlir_sched.runner import RunnerOptions
from mlir_sched.targets import detect_target
from mlir_sched.targets.target import Target
from mlir_sched.tasks import Model
from mlir_sched.tensors.parameters import ParameterFile, parameter_files
from mlir_sched.tuned_folder.names import LIBRARY

WEIGHTS, MIB = "weights.irpa", 2**20


@dataclass(frozen=True)
class Loaded:
    """What loading a program takes.

    Attributes:
        name: Of the network and the program.
        cost: The medians of several loads.
        plain: Those of plain ``iree-compile``.
        file_bytes: Size of the files of weights.
    """

    name: str
    cost: LoadCost
    plain: LoadCost
    file_bytes: int

    @property
    def peak(self) -> float:
        """Most memory while it is loaded, relative to plain."""
        return self.cost.peak_bytes / self.plain.peak_bytes

    @property
    def resident(self) -> float:
        """Memory that later calls need, relative to plain."""
        return self.cost.resident_bytes / self.plain.resident_bytes


COLUMNS: Columns[Loaded] = {
    ResultColumn("most memory over plain", Unit.RATIO): lambda row: round(row.peak, 2),
    ResultColumn("memory then over plain", Unit.RATIO): lambda row: round(row.resident, 2),
    ResultColumn("most memory, MiB", Unit.NUMBER): lambda row: round(row.cost.peak_bytes / MIB, 1),
    ResultColumn("files, MiB", Unit.NUMBER): lambda row: round(row.file_bytes / MIB, 1),
    ResultColumn("seconds", Unit.SECONDS): lambda row: float(f"{row.cost.seconds:.2g}"),
}


def main() -> None:
    """Print a row per program, and a line per variant that cannot be loaded."""
    arguments, publishing = parsed(_parser())
    target = detect_target("llvm-cpu", arguments.threads)
    rows = [row for model in arguments.models for row in _rows(model, target, arguments)]
    publishing.show(results_table(rows, publishing, arguments.threads), target)


def results_table(rows: Sequence[Loaded], publishing: Publishing, threads: int) -> ResultTable:
    """Return the table for a page of results."""
    return publishing.table(
        name="loading",
        question="tool",
        title="Memory while programs are loaded",
        threads=threads,
        seeds=(0,),
        spread="none; medians of loads in processes of their own",
        rows_are="network and program",
        columns=COLUMNS,
        rows=[(row.name, row) for row in rows],
        interleaving="One process after the other",
    )


def _rows(model: Path, target: Target, arguments: argparse.Namespace) -> Iterator[Loaded]:
    """Yield what the programs of a model take."""
    weights = parameter_files([f"model={model.parent / WEIGHTS}"])
    options = RunnerOptions.for_device(target.driver, threads=target.cores)
    plain, network = build_variant(model, target, Variant(Plan()), weights), model.parent.name

    def loaded(program: Model, compiled: CompiledModel) -> LoadCost:
        return _median([load_cost(options, program, compiled) for _ in range(arguments.repeat)])

    baseline = loaded(plain.model, plain.compiled())
    for built in [plain, *_variants(model, target, weights, plain, arguments)]:
        cost, name = baseline if built is plain else loaded(plain.model, built.compiled()), _name(built.variant.plan)
        yield Loaded(f"{network}, {name}", cost, baseline, _bytes(weights))
        if arguments.encode:
            with _encoded(built, weights) as (files, compiled):
                cost = loaded(replace(plain.model, parameters=files), compiled)
                yield Loaded(f"{network}, {name}, encoded", cost, baseline, _bytes(files))


def _name(plan: Plan) -> str:
    return f"{plan.base.name} with other algorithms" if plan.algorithms else plan.name


def _bytes(files: Sequence[ParameterFile]) -> int:
    return sum(Path(file.path).stat().st_size for file in files)


@contextmanager
def _encoded(
    built: BuiltVariant, weights: tuple[ParameterFile, ...]
) -> Iterator[tuple[tuple[ParameterFile, ...], CompiledModel]]:
    """Yield the encoded weights of a program, and the program that reads them."""
    flags, text = built.untuned_flags, built.variant.library
    with temporary_folder() as folder:
        library = Path(folder) / LIBRARY if text else None
        if library is not None:
            library.write_text(text)
        with encoded_program(Path(built.model.path), flags, library, weights) as encoded:
            vmfb = compile_to_bytes(encoded.program, (*flags, FROM_FLOW), library)
            files = tuple(ParameterFile(file.scope, file.path) for file in encoded.files)
            yield files, CompiledModel(vmfb, built.variant.plan.local_sync)


def _variants(
    model: Path, target: Target, weights: tuple[ParameterFile, ...], plain: BuiltVariant, arguments: argparse.Namespace
) -> Iterator[BuiltVariant]:
    """Yield the rewritten variants of a model, those named or all; print why others do not compile."""
    with rewriting(model, target) as rewritten:
        found = rewritten()
    chosen = [variant for variant in found.variants if variant.name in (arguments.variants or [variant.name])]
    for variant in [*chosen, *(_with_algorithms(model, target, found) if arguments.algorithms else ())]:
        attempt = try_variant(model, target, variant, weights, plain.model)
        if attempt.built is None:
            print(f"{variant.name}: {attempt.why}")
        else:
            yield attempt.built


def _with_algorithms(model: Path, target: Target, found: RewrittenVariants) -> Iterator[Variant]:
    """Yield the first variant that offers a choice of algorithms, with the other algorithm everywhere."""
    for plan in (variant.plan for variant in found.variants):
        if sites := [site for site in found.sites if plan.has_choice(site)]:
            yield planned_variant(model, target, plan.with_algorithms(sites))
            return


def _median(costs: Sequence[LoadCost]) -> LoadCost:
    """Return the medians of what several loads took."""
    peaks, residents = [cost.peak_bytes for cost in costs], [cost.resident_bytes for cost in costs]
    return LoadCost(
        statistics.median(cost.seconds for cost in costs),
        int(statistics.median(peaks)),
        int(statistics.median(residents)),
    )


def _parser() -> argparse.ArgumentParser:
    parser = options_of(__doc__)
    parser.add_argument("models", type=Path, nargs="+", metavar="MODEL")
    parser.add_argument("--variants", nargs="*", default=[], help="names of variants; all by default")
    parser.add_argument("--encode", action="store_true", help="also load every program with its weights encoded")
    parser.add_argument("--algorithms", action="store_true", help="also a variant with all other algorithms")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3, help="loads of each program; medians are shown")
    return parser
