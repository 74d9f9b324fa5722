"""The estimated time of a whole program, from those of its dispatches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import iree_cases as cases
import pytest
from fixed_targets import FIXED_CUDA
from plans import flagged

from mlir_sched.evaluation.estimating import LAUNCH_S, EstimatedPrograms, with_estimate
from mlir_sched.evaluation.evaluator import Evaluator, Evaluators, UntunedError
from mlir_sched.outcome import Outcome, Timing
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.variants.programs import Source
from mlir_sched.targets.target import GpuResources
from mlir_sched.tasks import Model
from mlir_sched.tasks.task import Task

pytestmark = pytest.mark.promise

DEVICE = GpuResources(10, 2048, 32, 65536, 100 << 10, 64, 1024, 1e9, memory_bytes_per_s=1e6)


@dataclass(frozen=True)
class Estimates(Evaluator):
    """An evaluator that knows the times of some dispatches by name."""

    seconds: Mapping[str, float]

    def untuned(self, task: Task, following: Sequence[Task] = ()) -> Outcome:
        assert all(other.name > task.name for other in following)
        if task.name not in self.seconds:
            raise UntunedError("no estimate")
        return Outcome(Timing.estimated(self.seconds[task.name], self.seconds[task.name]), None, "hash")

    def evaluate(
        self, task: Task, scripts: Sequence[str], known: Mapping[str, Outcome]
    ) -> Iterator[tuple[int, Outcome]]:
        raise NotImplementedError


@pytest.fixture
def built(tmp_path: Path) -> BuiltVariant:
    task = cases.task_of(tmp_path, cases.MATMUL)
    tasks = tuple(replace(task, name=name, weight=weight) for name, weight in [("a", 3), ("b", 1), ("c", 2)])
    return BuiltVariant(flagged("default"), Model("model.mlir", (), tasks, ()), b"", None, ())


def test_a_program_takes_what_its_dispatches_take_and_a_launch_each_at_least(built: BuiltVariant) -> None:
    found = with_estimate(built, None, Estimates({"a": 0.5, "b": 1e-9, "c": 0.25}), DEVICE)
    assert found.measured.median_s == pytest.approx(3 * 0.5 + LAUNCH_S + 2 * 0.25)
    assert (found.measured.ratio, found.was_run) == (1.0, False)
    assert found.profile is not None
    assert [found.profile.call_s(name) for name in "abc"] == [0.5, 1e-9, 0.25]


def test_a_dispatch_without_an_estimate_moves_its_data_at_least(built: BuiltVariant) -> None:
    found = with_estimate(built, None, Estimates({"a": 0.5, "b": 0.5}), DEVICE)
    (footprint,) = {task.footprint_bytes for task in built.model.tasks}
    assert footprint > 0
    assert found.measured.median_s == pytest.approx(4 * 0.5 + 2 * footprint / 1e6)


def test_variants_are_compared_with_the_default(built: BuiltVariant) -> None:
    default = with_estimate(built, None, Estimates(dict.fromkeys("abc", 0.5)), DEVICE)
    found = with_estimate(built, default, Estimates(dict.fromkeys("abc", 0.125)), DEVICE)
    assert found.measured.ratio == 4.0


def test_the_ratio_is_to_the_default_whichever_variant_stands_for_it(built: BuiltVariant) -> None:
    default = with_estimate(built, None, Estimates(dict.fromkeys("abc", 0.5)), DEVICE)
    fast = with_estimate(built, default, Estimates(dict.fromkeys("abc", 0.125)), DEVICE)
    with Evaluators(lambda _: nullcontext(Estimates(dict.fromkeys("abc", 0.0625)))) as evaluators:
        programs = EstimatedPrograms(Source(Path("model.mlir"), FIXED_CUDA), evaluators, DEVICE)
        (again, faster), failed = programs.time([fast, replace(built, timing=None)])
    assert (again, failed) == (fast, {})
    assert faster.measured.ratio == 8.0


def test_a_program_without_dispatches_takes_a_launch(built: BuiltVariant) -> None:
    nothing = replace(built, model=replace(built.model, tasks=()))
    assert with_estimate(nothing, None, Estimates({}), DEVICE).measured.median_s == LAUNCH_S
