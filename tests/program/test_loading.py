"""What loading a program takes beside the untuned program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from emission_cases import Nothing
from fixed_targets import FIXED_VULKAN
from rewriting import library_for, write
from scaled_product import MATRIX, PRODUCT, ROWS, SCALED, SIZE, scaled, write_weights

from mlir_sched.compiler import compile_to_bytes
from mlir_sched.errors import EnvironmentFailureError
from mlir_sched.outcome import LoadCost
from mlir_sched.payload import TensorSpec
from mlir_sched.program import loading
from mlir_sched.program.building import build_variant
from mlir_sched.program.loading import measure_loading
from mlir_sched.program.plan import Plan
from mlir_sched.program.rewrites.folding.folded_constants import FoldedConstants
from mlir_sched.program.variant import Variant
from mlir_sched.program.whole_program import CompiledModel
from mlir_sched.runner import RunnerOptions
from mlir_sched.runner.checks.check import Check
from mlir_sched.runner.program import Program
from mlir_sched.targets.target import Target
from mlir_sched.tasks import EntryPoint, Model
from mlir_sched.tensors.parameters import ParameterFile

MODEL = Model("model.mlir", (EntryPoint("main", (TensorSpec((4,), "f32"),), ()),), (), ())
COSTS = {b"plain": LoadCost(0.1, 100, 90), b"tuned": LoadCost(0.2, 200, 95)}


class NotedRunner(Nothing):
    """Knows what programs take, and notes on how many threads they are loaded."""

    threads: list[int]

    def __init__(self, options: RunnerOptions) -> None:
        super().__init__()
        self.threads.append(options.threads)

    def load_cost(self, program: Program, calls: Sequence[tuple[Program, Check]]) -> LoadCost:
        assert [one.entry for one, _ in calls] == ["main"]
        if program.vmfb not in COSTS:
            raise EnvironmentFailureError("the process is lost")
        return COSTS[program.vmfb]


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    monkeypatch.setattr(NotedRunner, "threads", [], raising=False)
    monkeypatch.setattr(loading, "Runner", NotedRunner)
    return NotedRunner.threads


def measured(tuned: CompiledModel, options: RunnerOptions) -> Any:
    found = measure_loading(options, MODEL, CompiledModel(b"plain"), tuned)
    return found and (found.untuned, found.tuned)


def test_each_program_is_loaded_on_its_threads(threads: list[int]) -> None:
    assert measured(CompiledModel(b"tuned", local_sync=True), RunnerOptions(threads=2)) == (*COSTS.values(),)
    assert threads == [2, 1]


def test_a_program_that_stays_as_it_is_is_loaded_once(threads: list[int]) -> None:
    assert measured(CompiledModel(b"plain"), RunnerOptions()) == (COSTS[b"plain"],) * 2
    assert threads == [1]


def test_nothing_is_known_where_a_process_is_lost_or_programs_run_elsewhere(threads: list[int]) -> None:
    assert measured(CompiledModel(b"other"), RunnerOptions()) is None
    threads.clear()
    assert measured(CompiledModel(b"tuned"), RunnerOptions.for_device(FIXED_VULKAN.driver)) is None
    assert threads == []


BESIDE = f"""{PRODUCT}{scaled("%weights", MATRIX)}
  %both = linalg.matmul ins(%image, %scaled : {ROWS}, {MATRIX}) outs(%sums : {ROWS}) -> {ROWS}
  return %both : {ROWS}
}}"""
"""Calls read scaled weights and their originals."""


@pytest.mark.promise
def test_folded_weights_replace_the_originals(tmp_path: Path, here: Target) -> None:
    weights = (tmp_path / "weights.irpa").resolve()
    write_weights(weights)
    model = write(tmp_path, SCALED)
    plain = build_variant(model, here, Variant(Plan()), (ParameterFile("model", str(weights)),))
    folded = CompiledModel(compile_to_bytes(model, library_for(FoldedConstants(), model, tmp_path)))
    beside = CompiledModel(compile_to_bytes(write(tmp_path, BESIDE), here.flags))
    options, bytes_ = RunnerOptions.for_device(here.driver), 4 * SIZE * SIZE
    found = measure_loading(options, plain.model, plain.compiled(), folded)
    assert found is not None
    assert found.untuned.resident_bytes == pytest.approx(bytes_, rel=0.2)
    assert found.tuned.resident_bytes <= 1.2 * found.untuned.resident_bytes
    assert found.tuned.peak_bytes >= 1.8 * found.untuned.peak_bytes, "originals are read from their file once"
    kept = measure_loading(options, plain.model, plain.compiled(), beside)
    assert kept is not None
    assert kept.tuned.resident_bytes >= 1.8 * kept.untuned.resident_bytes
