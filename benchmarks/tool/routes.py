"""Compiles a tuned model by every route that the docs name: ``python -m benchmarks routes MODEL TUNED``.

Each route is a fresh process that sees the model and a copy of the tuned folder in another place. The programs are then
checked and timed in turns with plain ``iree-compile``, in one session. Ends with exit code 1 where a route fails, or
where the gain of its program lies outside the interval that the folder's ``summary.json`` states and is not higher.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures.publishing import Publishing, gain, options_of, parsed
from benchmarks.figures.result_table import Columns, ResultColumn, ResultTable, Unit
from mlir_sched.compiler import compile_to_bytes
from mlir_sched.compiler.iree_compile import iree_compile_path
from mlir_sched.outcome import Timing
from mlir_sched.program.whole_program import CompiledModel, measure_programs
from mlir_sched.runner import Runner, RunnerOptions, RunResult
from mlir_sched.targets import detect_target
from mlir_sched.targets.target import LOCAL_SYNC
from mlir_sched.tasks import extract
from mlir_sched.tensors.parameters import parameter_files
from mlir_sched.tuned_folder.folder import read_tuned_folder

COMMAND = (sys.executable, "-m", "mlir_sched.cli")
PROJECT = """cmake_minimum_required(VERSION 3.22)
project(route LANGUAGES NONE)
find_package(mlir_sched REQUIRED)
mlir_sched_compile(TARGET route SOURCE "{model}" TUNED "{tuned}" OUTPUT program.vmfb)
"""


class RouteError(Exception):
    """A command of a route failed; the message has the command and what it printed."""


@dataclass(frozen=True)
class Route:
    """A program that was compiled by a route.

    Attributes:
        program: The program.
        seconds: Seconds that all commands took.
    """

    program: bytes
    seconds: float


def by_iree_compile(model: Path, tuned: Path, folder: Path) -> Path:
    """Compile with ``iree-compile @flags.txt``, in a folder of its own, once the moved folder's paths are set."""
    output = folder / "program.vmfb"
    run(folder, *COMMAND, "relocate", tuned)
    run(folder, iree_compile_path(), f"@{tuned / 'flags.txt'}", model, "-o", output)
    return output


def by_command(model: Path, tuned: Path, folder: Path) -> Path:
    """Compile with ``mlir-sched compile``, which needs no paths to be set."""
    output = folder / "program.vmfb"
    run(folder, *COMMAND, "compile", model, "--tuned", tuned, "-o", output, "--strict")
    return output


def by_cmake(model: Path, tuned: Path, folder: Path) -> Path:
    """Compile with the CMake function, which needs no paths to be set."""
    (folder / "CMakeLists.txt").write_text(PROJECT.format(model=model, tuned=tuned))
    package = run(folder, *COMMAND, "--cmake-dir").strip()
    where = f"-Dmlir_sched_DIR={package}", f"-DIREE_COMPILE={iree_compile_path()}"
    run(folder, "cmake", "-S", folder, "-B", folder / "build", *where)
    run(folder, "cmake", "--build", folder / "build")
    return folder / "build" / "program.vmfb"


ROUTES: Mapping[str, Callable[[Path, Path, Path], Path]] = {
    "iree-compile @flags.txt": by_iree_compile,
    "mlir-sched compile": by_command,
    "CMake": by_cmake,
}


def run(folder: Path, *command: object) -> str:
    """Run a command in a folder and return what it printed.

    Raises:
        RouteError: See there.
    """
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RouteError(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def compiled_by_routes(model: Path, tuned: Path) -> dict[str, Route]:
    """Return the program of every route, by name.

    Raises:
        RouteError: See there.
    """
    found = dict[str, Route]()
    for name, compiled in ROUTES.items():
        with tempfile.TemporaryDirectory() as scratch:
            folder, moved, start = Path(scratch).resolve(), Path(scratch).resolve() / "moved", time.monotonic()
            shutil.copytree(tuned, moved, ignore=shutil.ignore_patterns("*.sqlite*"))
            found[name] = Route(compiled(model, moved, folder).read_bytes(), time.monotonic() - start)
    return found


def holds(timing: Timing | None, stated: Mapping[str, float]) -> bool:
    """Say whether a program's gain is what a summary states: their intervals meet, or the program's is higher."""
    return timing is not None and timing.ratio_high >= stated["ratio_low"]


def main() -> int:
    arguments, publishing = parsed(_parser())
    tuned, model = read_tuned_folder(arguments.tuned), arguments.model.resolve()
    stated, weights = tuned.summary["program"]["tuned"], parameter_files(arguments.parameters)
    target = detect_target("llvm-cpu", arguments.threads)
    local_sync = tuned.summary["program"]["device"] == LOCAL_SYNC
    try:
        routes = compiled_by_routes(model, tuned.path.resolve())
    except RouteError as error:
        sys.exit(f"error: {error}")
    plain = CompiledModel(compile_to_bytes(model, target.flags))
    programs = [CompiledModel(route.program, local_sync) for route in routes.values()]
    with Runner(RunnerOptions.final(target.driver, threads=target.cores)) as runner:
        _, results = measure_programs(runner, extract(model, target, parameters=weights), plain, programs)
    publishing.show(results_table(model.stem, routes, results, arguments.threads, publishing), target)
    low, median, high = (stated[name] for name in ("ratio_low", "ratio", "ratio_high"))
    print(f"stated by the folder: {median:.2f}x ({low:.2f} to {high:.2f})")
    return int(not all(result.valid and holds(result.valid, stated) for result in results))


COLUMNS: Columns[tuple[Route, RunResult]] = {
    ResultColumn("took", Unit.SECONDS): lambda row: row[0].seconds,
    ResultColumn("speed-up", Unit.RATIO): lambda row: None if row[1].timing is None else gain(row[1].timing),
    ResultColumn("numbers"): lambda row: row[1].why_not_valid or row[1].verdict.value,
}


def results_table(
    model: str, routes: Mapping[str, Route], results: Sequence[RunResult], threads: int, publishing: Publishing
) -> ResultTable:
    """Return a table of results with a row per route."""
    return publishing.table(
        name="routes",
        question="networks",
        title=f"Every route from the folder of {model} to a program",
        threads=threads,
        seeds=[],
        interleaving="Programs from fresh processes in turns with plain `iree-compile`'s",
        spread="95 % interval of the median",
        rows_are="route",
        columns=COLUMNS,
        rows=zip(routes, zip(routes.values(), results, strict=True), strict=True),
    )


def _parser() -> argparse.ArgumentParser:
    parser = options_of(__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("tuned", type=Path, help="what tune wrote")
    parser.add_argument("--parameters", action="append", default=[], metavar="SCOPE=FILE")
    parser.add_argument("--threads", type=int, default=1, help="as the folder was tuned for")
    return parser
