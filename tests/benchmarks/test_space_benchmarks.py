"""The benchmarks of design spaces: how many traces there are, growing spaces, reports, and one small run of each."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from contraction_payloads import matmul
from fixed_targets import FIXED
from replayed_run import TARGET, matmul_dispatch, task_of

from benchmarks.figures.rows import Against
from benchmarks.folders import ROOT
from benchmarks.operators import further_shapes
from benchmarks.operators.further_shapes import Found, candidates_of
from benchmarks.search import enumeration, space_audit
from benchmarks.search.composition import rows as composition
from benchmarks.search.composition.rows import Best, Row, gain_of, winning_modules
from benchmarks.search.composition.spaces import PARTS, growing_spaces
from benchmarks.search.enumeration import Size, enumerate_traces, size_of
from benchmarks.search.space_audit import SketchAudit, failing_share
from mlir_sched.compiler import CompileResult
from mlir_sched.database import RecordStore
from mlir_sched.database.record import Origin, Record, StoredTask
from mlir_sched.errors import Failure, FailureClass
from mlir_sched.outcome import Outcome, Timing, Verdict
from mlir_sched.pipeline import default_store
from mlir_sched.runner.checks.check import Checks
from mlir_sched.runner.program import Program
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace
from mlir_sched.transform_scripts.llvm_cpu import ElementwiseTiling, LoweringConfig

TINY = matmul(16, 16, 16).text

RNG = np.random.default_rng(0)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    (tmp_path / "tiny.mlir").write_text(TINY)
    return tmp_path / "tiny.mlir"


def run(module: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", module, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)


@pytest.fixture
def run_here(
    short_sessions: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[str, int]]:
    """Return a function that runs a benchmark in this process and returns what it prints, and its exit code."""

    def run_main(module: str, *arguments: object) -> tuple[str, int]:
        monkeypatch.setattr(sys, "argv", [module, *map(str, arguments)])
        try:
            code = importlib.import_module(f"benchmarks.{module}").main()
        except SystemExit as ended:
            code = ended.code
        return capsys.readouterr().out, int(code or 0)

    return run_main


@pytest.mark.landing
def test_enumeration_finds_every_legal_trace_once(space_for: Callable[[str], DesignSpace]) -> None:
    space = space_for("softmax")
    (sketch,) = space.sketches
    traces = list(enumerate_traces(space, sketch))
    assert len({trace.key for trace in traces}) == len(traces)
    assert all(space.repaired(trace) == trace for trace in traces)
    rng = np.random.default_rng(0)
    assert {space.sample(rng).key for _ in range(50)} <= {trace.key for trace in traces}
    assert size_of(space, sketch, rng) == Size(len(traces))
    name, value = next(iter(traces[0].values.items()))
    pinned = list(enumerate_traces(space, sketch, {name: value}))
    assert pinned == [trace for trace in traces if trace.values[name] == value]


@pytest.mark.landing
def test_the_estimate_agrees_with_the_count(
    space_for: Callable[[str], DesignSpace], monkeypatch: pytest.MonkeyPatch
) -> None:
    space = space_for("softmax")
    (sketch,) = space.sketches
    counted = size_of(space, sketch, np.random.default_rng(0))
    monkeypatch.setattr(enumeration, "MOST_STEPS", 3)
    estimated = size_of(space, sketch, np.random.default_rng(0))
    assert counted.exact
    assert not estimated.exact
    assert abs(estimated.traces - counted.traces) < 4 * estimated.error
    assert str(estimated).startswith("~")


def test_spaces_grow_up_to_the_whole_one() -> None:
    whole = Space.default(FIXED).insert(LoweringConfig(), after="lowering")
    spaces = growing_spaces(whole)
    names = [[module.name for module in named.space.modules] for named in spaces]
    assert all(set(before) <= set(after) for before, after in pairwise(names))
    assert spaces[-1].space.modules == whole.modules
    assert names[-2] == [module.name for module in Space.default(FIXED).modules]
    assert [named.name for named in spaces[: len(PARTS)]] == [part.name for part in PARTS]


def test_a_new_module_becomes_a_part_of_its_own() -> None:
    class Vendor(ElementwiseTiling):
        name = "vendor"

    spaces = growing_spaces(Space.default(FIXED).insert(Vendor()))
    assert "vendor" in [named.name for named in spaces[len(PARTS) :]]
    assert "vendor" not in [module.name for named in spaces[: len(PARTS)] for module in named.space.modules]


@pytest.mark.nightly
def test_the_first_spaces_have_a_program_less(space_for: Callable[[str], DesignSpace]) -> None:
    whole = space_for("matmul")
    spaces = growing_spaces(Space.default(FIXED))
    sketches = [DesignSpace(named.space, whole.dispatch, FIXED).sketches for named in spaces]
    assert sketches[0] == sketches[1] == ("contraction.cache",)
    assert set(sketches[-1]) == set(whole.sketches) > set(sketches[0])
    sizes = [size_of(DesignSpace(n.space, whole.dispatch, FIXED), "contraction.cache", RNG) for n in spaces[:2]]
    assert sizes[0].exact
    assert 10 * sizes[0].traces < sizes[1].traces


def best(seconds: float, *modules: str, failed: int = 0) -> Best:
    return Best(seconds, {"dispatch": "sketch"}, modules, 8, failed)


ROWS = [
    Row(
        "a", 4e-3, {"one": (best(4e-3), best(3e-3), best(2e-3)), "two": (best(1e-3, "x"), best(1e-3, "x"), best(2e-3))}
    ),
    Row("b", 1e-3, {"one": (best(1e-3),) * 3, "two": (best(1e-3, failed=2),) * 3}),
]


def test_composition_reports_medians_gains_and_modules_without_a_win() -> None:
    assert ROWS[0].seconds("one") == (3e-3, 2e-3, 4e-3)
    assert ROWS[0].speedup("two") == (4.0, 2.0, 4.0)
    assert [gain_of(row, "two") for row in ROWS] == [3.0, 1.0]
    assert gain_of(ROWS[0], "one") == 1.0
    assert winning_modules(ROWS) == {"x": ["a"]}
    notes = composition.notes_of(ROWS, ["x", "y"])
    assert notes[0] == "gain of two: 1.73, 1 of 2 faster"
    assert "x has a part in what gains on a" in notes
    assert "in no best script that gains: y" in notes
    assert notes[-1] == "96 candidates tried, 6 failed"


def test_composition_rows_are_read_back_under_the_same_setting_only(tmp_path: Path) -> None:
    kept = composition.KEPT
    kept.write(tmp_path / "all.json", ROWS, {"trials": 8})
    assert kept.read(tmp_path / "all.json", {"trials": 8}) == ROWS
    assert kept.read(tmp_path / "all.json", {"trials": 9}) is None
    assert kept.read(tmp_path / "none.json", {"trials": 8}) is None
    assert kept.read(None, {"trials": 8}) is None


def audit(sketch: str, sampled: int, failed: int) -> SketchAudit:
    failures = {"compile_error": failed} if failed else {}
    messages = {"compile_error": "too large"} if failed else {}
    return SketchAudit("p", "t", sketch, Size(10), 100, 50, sampled, sampled - failed, failures, messages)


def test_audit_names_dispatches_with_too_many_failures() -> None:
    audits = [audit("few", 2, 1), audit("many", 100, 0), audit("empty", 0, 0)]
    assert failing_share(audits) == {("p", "t"): 0.25}
    notes = space_audit.notes_of(audits)
    assert notes == ["t few: compile_error: too large", "p t: 25.0% of the candidates fail"]


@pytest.mark.landing
def test_audit_counts_failures_of_compiler_and_check_and_equal_programs(
    tmp_path: Path, task_for: Callable[[str], Task]
) -> None:
    task = task_for("softmax")
    broken = Failure(FailureClass.COMPILE_ERROR, "too large")

    class Pool:
        def compile(self, task: Task, scripts: Sequence[str | None]) -> Iterator[tuple[int, CompileResult]]:
            yield 2, CompileResult(None, broken, "", 0.1)
            yield from ((i, CompileResult(b"x", None, f"{min(i, 3)}", 0.1)) for i in range(len(scripts)) if i != 2)

    class Checker:
        def check(self, baseline: Program, candidates: Sequence[Program], checks: Checks) -> list[Failure | None]:
            return [None, Failure(FailureClass.WRONG_RESULT, "differs")]

    (found,) = space_audit.audit_task("p", task, FIXED, cast(Any, Pool()), cast(Any, Checker()), (20, 5), seed=0)
    assert (found.sampled, found.binaries) == (5, 2)
    assert found.failures == {"compile_error": 1, "wrong_result": 3}
    assert found.messages == {"compile_error": "too large", "wrong_result": "differs"}
    space_audit.KEPT.write(tmp_path / "audit.json", [found], {})
    assert json.loads((tmp_path / "audit.json").read_text())["sketches"][0]["failures"] == found.failures


@pytest.mark.landing
def test_an_audit_run(tiny: Path, tmp_path: Path) -> None:
    done = run("space_audit", tiny, "--samples", 2, "--attempts", 50, "--json", tmp_path / "audit.json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "audit.json").read_text())["sketches"]
    assert {sketch["program"] for sketch in found} == {"tiny"}
    assert all(0 < sketch["legal"] <= sketch["attempts"] == 50 for sketch in found)
    assert all((sketch["sampled"], sketch["failures"]) == (2, {}) for sketch in found)
    assert all(sketch["size"]["traces"] > 2 for sketch in found)


@pytest.mark.landing
def test_a_composition_run_goes_on_where_it_was(
    tiny: Path, tmp_path: Path, run_here: Callable[..., tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    shorter = "benchmarks.search.composition.command.growing_spaces"
    monkeypatch.setattr(shorter, lambda whole: growing_spaces(whole)[-2:])
    files = ("--json", tmp_path / "all.json", "--store", tmp_path / "store.sqlite")
    options = ("--trials", 2, "--round-size", 2, "--seeds", 1)
    printed, code = run_here("search.composition.command", tiny, *options, *files)
    assert code == 0
    (row,) = json.loads((tmp_path / "all.json").read_text())["rows"]
    assert row["name"] == "tiny"
    assert all(cell["trials"] == 2 for cells in row["best"].values() for cell in cells)
    assert any(cell["sketches"] for cells in row["best"].values() for cell in cells), "no script was measured"
    again, _ = run_here("search.composition.command", tiny, *options, *files)
    assert "seed 0" in printed
    assert "seed 0" not in again  # the row is there already


@pytest.mark.promise
def test_what_is_no_operator_is_refused() -> None:
    for module in ("composition", "space_audit"):
        done = run(module, "XYZ")
        assert done.returncode == 1
        assert "operators are C1D, C2D" in done.stderr


def found(name: str, ratio: tuple[float, float, float] | None, problem: str = "", failed: int = 0) -> Found:
    best = None if ratio is None else Against("IREE O3", *ratio, one_day=False)
    failures = {"wrong_result": (failed, "differs")} if failed else {}
    return Found(name, problem, 1e-3, 0.5, "FMA", best, best, "O3", 32, failures, 9.0, "O3, reduction")


def test_further_shapes_are_judged_by_failures_and_losses() -> None:
    assert found("even", (0.99, 0.97, 0.985)).verdict == ""
    assert found("lost", (0.95, 0.93, 0.97)).verdict == "loss"
    assert replace(found("too short to tell", (0.95, 0.93, 0.97)), seconds=1e-6).verdict == ""
    assert found("one fails", (1.2, 1.1, 1.3), failed=1).verdict == ""
    assert found("fails", (1.2, 1.1, 1.3), failed=2).verdict == "failures"
    assert found("broken", None, "mlir-sched : x: the compiler died").verdict == "error"
    assert found("missed", (1.0, 0.99, 1.01)).missed
    assert not found("gained", (1.2, 1.1, 1.3)).missed
    assert not replace(found("at the peak", (1.0, 0.99, 1.01)), of_roofline=0.9).missed


def test_further_shapes_are_read_back_under_the_same_setting_only(tmp_path: Path) -> None:
    rows = [found("a", (1.2, 1.1, 1.3), failed=1), found("b", None, "no")]
    further_shapes.KEPT.write(tmp_path / "all.json", rows, {"trials": 8})
    assert further_shapes.KEPT.read(tmp_path / "all.json", {"trials": 8}) == rows
    assert further_shapes.KEPT.read(tmp_path / "all.json", {"trials": 9}) is None
    notes = further_shapes.notes_of(rows)
    assert notes[:2] == ["b: no", "a: 1 times wrong_result: differs"]
    assert notes[-1] == "2 shapes, 64 candidates, 1 failed; 1 shapes are not well"


@pytest.mark.nightly
def test_a_run_of_one_further_shape_goes_on_where_it_was(
    tmp_path: Path, run_here: Callable[..., tuple[str, int]]
) -> None:
    asked = {"trials": 2, "threads": 1, "seed": 0, "rounds": 6}
    path = tmp_path / "all.json"
    further_shapes.KEPT.write(path, [], asked)
    options = ("--only", "matmul_tiny", "--trials", 2, "--rounds", 6, "--json", path, "--store", tmp_path / "store")
    printed, code = run_here("operators.further_shapes", *options)
    (row,) = further_shapes.KEPT.read(path, asked) or []
    assert code == int(bool(row.verdict)), printed  # the shape may lose where other work disturbs the machine
    assert (row.name, row.tried, row.failed, row.problem) == ("matmul_tiny", 2, 0, "")
    assert row.best is not None
    assert 0 < row.of_roofline < 1
    again, _ = run_here("operators.further_shapes", *options)
    assert "matmul_tiny ..." in printed
    assert "matmul_tiny ..." not in again
    assert "no such shape: XYZ" in run("further_shapes", "--only", "XYZ").stderr


def test_failing_candidates_of_a_shape_are_counted(tmp_path: Path) -> None:
    outcomes = [
        Outcome(Timing(1e-3, 1e-3, 1e-3, 9, 1.0, 1.0, 1.0), None, "right", verdict=Verdict.RIGHT),
        Outcome(None, Failure(FailureClass.WRONG_RESULT, "off by one")),
        Outcome(None, Failure(FailureClass.WRONG_RESULT, "off by two")),
    ]
    task = task_of("shape", matmul_dispatch(8, 8, 8))
    with RecordStore.open(default_store(tmp_path)) as store:
        store.add_task(StoredTask.of(task, TARGET))
        for number, outcome in enumerate(outcomes):
            trace = Trace(f"sketch_{number}", ())
            store.add([Record(task.key, "here", trace.key, Origin.SCRIPT, trace, "", outcome, 0, 0)])
    assert candidates_of(tmp_path) == (3, {"wrong_result": (2, "off by one")})
