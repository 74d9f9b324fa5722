"""Every benchmark whose figures are published can put them into a file of results: the tables that it makes."""

from __future__ import annotations

import ast
import math
import re
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest
from fixed_targets import FIXED
from folders import ROOT

from benchmarks.__main__ import PROGRAMS
from benchmarks.devices.cuda_assembly import tables as assembly
from benchmarks.devices.device_check.candidates import Numbers
from benchmarks.devices.device_check.report import Report
from benchmarks.devices.device_check.speeds import Speed, Speeds
from benchmarks.devices.time_model import Ranking
from benchmarks.devices.time_model import results_table as time_model
from benchmarks.figures.publishing import WHOLE_PATH, Publishing
from benchmarks.figures.result_table import Machine, MachineResults, ResultTable
from benchmarks.figures.rows import Against
from benchmarks.fuzz.command import results_table as fuzz
from benchmarks.fuzz.judge import Fate, Judgement
from benchmarks.networks.coverage import results_table as coverage
from benchmarks.operators import hardware_specific
from benchmarks.operators.further_shapes import Found
from benchmarks.operators.further_shapes import results_table as further_shapes
from benchmarks.pages.command import results_by_name
from benchmarks.pages.machine_page import machine_page
from benchmarks.search import search_quality, space_audit, task_scheduling
from benchmarks.search.composition import rows as composition
from benchmarks.search.composition.rows import Best, Row
from benchmarks.search.enumeration import Size
from benchmarks.tool import kills, routes
from mlir_sched.errors import Failure, FailureClass
from mlir_sched.outcome import Timing, Verdict
from mlir_sched.runner import RunResult
from mlir_sched.targets.target import LOCAL_SYNC
from mlir_sched.tuned_folder.result import ProgramResult, TuneResult

PUBLISHING = Publishing(Path("machine.json"), ("One run.",), "python -m benchmarks something")
TIMING = Timing(2e-3, 2e-3, 2e-3, 9, 1.5, 1.4, 1.6)
PROGRAM = ProgramResult(TIMING, TIMING, {"O3": 1.2}, "O3", LOCAL_SYNC, verdict=Verdict.RIGHT)
TUNED = TuneResult(
    "m.mlir", "llvm-cpu", 1, 0, 8, 8, 60.0, 60.0, {}, False, PROGRAM, {}, (), (), None, "store", (), 0.9, None, {}
)
SETTING = Namespace(threads=1, seed=0, minutes=3.0, model=Path("model.mlir"))


def published() -> list[str]:
    """Return the names of all benchmarks of which the results have a table."""
    tables = (table for found in results_by_name().values() for table in found.tables)
    found = [re.match(r"python -m benchmarks (\S+)", table.command) for table in tables]
    return sorted({match[1] for match in found if match})


@pytest.mark.parametrize("name", published())
def test_a_benchmark_with_published_figures_takes_a_file_of_results(name: str) -> None:
    path = ROOT / "benchmarks" / PROGRAMS[name].replace(".", "/")
    tree = ast.parse(path.with_suffix(".py").read_text())
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    if "parsed" not in called or not called & {"publishing.add", "publishing.show"}:
        assert name == "networks.export", "its command exports what another command of the same table measures"


def shown(table: ResultTable) -> str:
    """Return the rows of a table as its page has them."""
    page = machine_page("machine", MachineResults(Machine("a machine", "a processor", (), 2), (table,)))
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    return "\n".join(line for line in lines[2:])


def test_published_commands_name_no_folder_of_the_machine_that_they_ran_on() -> None:
    tables = [table for found in results_by_name().values() for table in found.tables]
    assert tables
    assert not [table.command for table in tables if WHOLE_PATH.search(table.command)]


def test_trials_of_strategies_are_counted_per_space_and_averaged_over_spaces() -> None:
    slow, fast = (4.0,) * 8 + (2.0,) * 8, (2.0,) * 15 + (1.0,)
    runs = tuple(
        search_quality.SearchRun("space", name, seed, best, 1.0)
        for name in search_quality.STRATEGIES
        for seed, best in enumerate((slow, fast))
    )
    searched = search_quality.Searched("space", (1.0, *[4.0] * 18, math.inf), runs)
    trials, behind = search_quality.results_tables([searched], 0.01, PUBLISHING)
    assert shown(trials) == "| space | 20 | inf (16 to inf) | inf (16 to inf) | 10 |"
    *_, without_model, random = shown(behind).splitlines()
    assert without_model == "| evolution | 183 % (100 % to 300 %) | 41.4 % (0 % to 100 %) |"
    assert random == f"| random | {100 * (4 ** (12 / 20) - 1):.3g} % | {100 * (4 ** (4 / 20) - 1):.3g} % |"


def test_rounds_of_several_sizes_are_compared_over_all_spaces_and_seeds() -> None:
    runs = [
        search_quality.SearchRun(space, search_quality.MODEL, 0, (4.0,) * 16 + (2.0,) * 15 + last, 1.0)
        for space, last in (("one", (1.0,)), ("other", (2.0,)))
    ]
    table = search_quality.rounds_table({8: runs, 16: runs[:1]}, 0.01, PUBLISHING)
    assert shown(table).splitlines() == [
        "| 8 | 4 | 1.414 | 1.414 | inf (32 to inf) |",
        "| 16 | 4 | 1 | 1 | 32 (32 to 32) |",
    ]


def test_spaces_that_grow_are_columns() -> None:
    best = [Best(seconds, {}, (), 8, 0) for seconds in (1e-3, 2e-3, 4e-3)]
    rows = [Row("a", 4e-3, {"tiles": tuple(best), "caches": (best[0],) * 3})]
    table = composition.results_table(rows, 1, 3, PUBLISHING)
    assert [column.title for column in table.columns] == ["untuned", "tiles", "+ caches"]
    assert shown(table) == "| a | 4.00 ms | 2.00 (1.00 to 4.00) | 4.00 (4.00 to 4.00) |"


def test_a_sketch_has_its_size_and_its_failures() -> None:
    audit = space_audit.SketchAudit("p", "t", "s", Size(10), 100, 50, 8, 7, {"wrong_result": 1}, {})
    table = space_audit.results_table([audit], SETTING, PUBLISHING)
    assert shown(table) == "| p: t, s | 10 | 50 % | 7 of 8 | 7 | wrong_result 1 |"


def test_scheduling_has_a_row_per_rule() -> None:
    cells = [
        task_scheduling.Cell("alike", name, 4, without, 1.1, 1.05, 0.5, 0.1)
        for name, without in (("a", 2.0), ("b", 8.0))
    ]
    modelled, recorded = task_scheduling.results_tables(cells, [replace(cells[0], spent=10)], 3, PUBLISHING)
    rules = {"without similarity": 4, "with similarity": 1.1, "knowing every course": 1.05}
    assert shown(modelled).splitlines() == [f"| alike, {rule} | {value} |" for rule, value in rules.items()]
    rules["without similarity"] = 2
    assert shown(recorded).splitlines() == [f"| a, {rule} | {value} |" for rule, value in rules.items()]
    assert [column.title for column in recorded.columns] == ["10 s"]


def test_a_shape_has_what_it_is_compared_with() -> None:
    best = Against("IREE O3", 1.5, 1.4, 1.6, one_day=False)
    found = Found(
        "dot", "", 1e-3, 0.5, "FMA", None, best, "O3", 32, {"wrong_result": (1, "text")}, 9.0, "O3, reduction"
    )
    table = further_shapes([found], Namespace(target=Namespace(cores=1), seeds=(0,)), PUBLISHING)  # type: ignore[arg-type]
    row = "| dot | 1.00 ms | 50 % | - | 1.50 (1.40 to 1.60), O3 | 1 of 32 | 9.00 s | O3, reduction | - |"
    assert shown(table) == row


def test_results_of_whole_runs_have_their_gains() -> None:
    gain = "1.50 (1.40 to 1.60)"
    table = hardware_specific.results_table({"bf16": (TUNED, TUNED)}, 0, PUBLISHING)
    assert shown(table) == f"| bf16 | 2.00 ms | 1.20, O3 | {gain}, O3 | {gain}, O3 |"
    table = coverage({"ViT": TUNED}, SETTING, PUBLISHING)
    assert shown(table) == f"| ViT | 2.00 ms | 2.00 ms | {gain} | O3, 0 scripts | 8 | 1 | 90 % |"
    table = kills.results_table([kills.Kill(3.0, "search", 7, ("lost",))], TUNED.to_json(), SETTING, PUBLISHING)
    assert shown(table) == f"| model | 1 | 1 | {gain} |"
    right = RunResult(TIMING, None, verdict=Verdict.RIGHT)
    failed = RunResult(None, Failure(FailureClass.RUN_ERROR, "busy"))
    both = {"iree-compile": routes.Route(b"", 10.5), "CMake": routes.Route(b"", 8.0)}
    table = routes.results_table("model", both, [right, failed], 1, PUBLISHING)
    first, second = shown(table).splitlines()
    assert first == f"| iree-compile | 10.5 s | {gain} | right |"
    assert second.startswith("| CMake | 8.00 s | - | ")
    assert "busy" in second


def test_devices_have_counts_figures_and_estimates() -> None:
    speeds = Speeds((Speed("matmul", 10**10, TUNED, 2e-5),), ())
    table = Report(FIXED, Numbers((), (), ()), speeds, 90.0, 0, PUBLISHING).results_table()
    assert shown(table) == "| matmul | 2.00 ms | 2.00 ms | 1.50 (1.40 to 1.60) | 0.00 ns | - | 20.0 us | - | 8 |"
    table = time_model([Ranking("p", [4.0, 1.0, 2.0, 3.0], [5.0, float("inf"), 1.0, 2.0])], PUBLISHING)
    assert shown(table) == "| p | 4 | 1 | 1.00 to 4.00 s | 1 | 2.00 | 1.00 |"
    modules = [["shared", *"123456789"]]
    models = [["matmul", "untuned", *"1234567"], ["matmul", "first", *"1234567"]]
    assembled, estimated = assembly.results_tables(modules, models, FIXED, PUBLISHING)
    assert shown(assembled).startswith("| shared | 1 | 2 |")
    assert [row.split(" | ")[0] for row in shown(estimated).splitlines()] == ["| matmul: untuned", "| matmul: first"]


def test_what_became_of_random_programs_is_counted() -> None:
    fates = (Fate.TUNED, Fate.UNTUNED, Fate.TUNED)
    table = fuzz([Judgement(seed, fate, "") for seed, fate in enumerate(fates)], PUBLISHING)
    assert shown(table) == "| tuned, right | 2 |\n| written as it is, right | 1 |"
