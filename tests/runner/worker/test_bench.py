"""What the runner process keeps from task to task, on a device of NumPy arrays that counts the calls of programs."""

import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from measured_programs import CHECKS

from mlir_sched.payload import TensorSpec
from mlir_sched.runner import protocol
from mlir_sched.runner.program import Program
from mlir_sched.runner.protocol import LONG_CALL_S
from mlir_sched.runner.worker import kept_references, workspace
from mlir_sched.runner.worker.benches import bench
from mlir_sched.runner.worker.kept_references import KeptReferences
from mlir_sched.runner.worker.workspace import Workspace
from mlir_sched.tensors.parameters import ParameterFile

VECTOR = TensorSpec((1000,), "f32")
NEW = 2 * len(CHECKS)
"""Calls of a baseline that is new: its results and their repetition."""


class View(np.ndarray[Any, Any]):
    """A buffer view."""

    @property
    def byte_length(self) -> int:
        return self.nbytes


class CopyProgram:
    """Copies its input, or writes zeros, and counts its calls."""

    def __init__(self, name: str, calls: Counter[str]) -> None:
        self._name, self._calls = name, calls

    def call(self, inputs: Sequence[View], destinations: Sequence[View]) -> list[View]:
        self._calls[self._name] += 1
        destinations[0][...] = 0 if self._name == "zeros" else inputs[0]
        return list(destinations)


def doubled(program: CopyProgram, inputs: Sequence[View], destinations: Sequence[View]) -> list[View]:
    """Write twice the input."""
    del program
    destinations[0][...] = 2 * inputs[0]
    return list(destinations)


class ArrayDevice:
    """Its memory is NumPy's."""

    def __init__(self) -> None:
        self.calls = Counter[str]()

    def buffer(self, array: Any, spec: TensorSpec) -> View:
        return np.array(array).view(np.float32).reshape(spec.shape).view(View)

    def read(self, view: View, spec: TensorSpec, *, keep: bool = False) -> Any:
        return np.array(view) if keep else np.asarray(view)

    def write(self, view: View, spec: TensorSpec, array: Any) -> None:
        view.view(np.uint32)[...] = array.view(np.uint32)

    def mend_guard(self, view: View, spec: TensorSpec) -> int:
        del view, spec
        return 0

    def load(self, program: Program) -> CopyProgram:
        return CopyProgram(program.entry, self.calls)


class ArrayBench(bench.Bench):
    """Says of every program that a call takes ``call_s``."""

    def __init__(self, call_s: float = 1e-3) -> None:
        super().__init__()
        self.array_device = ArrayDevice()
        self.call_s = call_s

    def device(self) -> Any:
        return self.array_device

    def rough_s(self, handle: int, sample_s: float) -> float:
        return self.call_s

    def pairs(self, request: protocol.SamplePairs) -> tuple[protocol.Pair, ...]:
        raise NotImplementedError

    def calls_to_prepare(self, name: str, *weights: Path) -> int:
        before = self.array_device.calls[name]
        files = tuple(ParameterFile("", str(path)) for path in weights)
        prepared = self.prepare(
            protocol.Prepare(Program(b"", name, (VECTOR,), (VECTOR,), True, parameters=files), CHECKS)
        )
        assert (prepared.error, prepared.call_s) == (None, self.call_s)
        return self.array_device.calls[name] - before


def test_a_task_that_comes_back_is_checked_once() -> None:
    tasks = ArrayBench()
    assert [tasks.calls_to_prepare(name) for name in ("a", "b", "a", "a", "b")] == [NEW, NEW, 1, 1, 1]


def test_a_slow_task_that_comes_back_is_not_called() -> None:
    tasks = ArrayBench(call_s=LONG_CALL_S)
    assert [tasks.calls_to_prepare(name) for name in ("a", "b", "a", "a")] == [NEW, NEW, 0, 0]


def test_a_baseline_whose_check_is_slow_repeats_one_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "LONG_CALL_S", 0.0)
    assert ArrayBench().calls_to_prepare("a") == len(CHECKS) + 1


def test_the_results_of_a_slow_baseline_are_computed_in_one_process_of_a_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(workspace, "LONG_CALL_S", 0.0)
    calls, processes = list[int](), [ArrayBench(), ArrayBench(), ArrayBench()]
    for process in processes:
        process.references = KeptReferences(tmp_path)
        calls.append(process.calls_to_prepare("a"))
    assert calls == [len(CHECKS) + 1, 1, 1]
    for handle, name in enumerate(("a", "zeros"), start=1):
        processes[2].load(handle, Program(b"", name, (VECTOR,), (VECTOR,), True))
        wrong = [processes[2].verify(handle, check) is not None for check in range(len(CHECKS))]
        assert wrong == [name == "zeros"] * len(CHECKS)


def with_kept_results(folder: Path) -> ArrayBench:
    """Return a process that finds the results of a task, which another process has kept."""
    one, other = ArrayBench(), ArrayBench()
    one.references = other.references = KeptReferences(folder)
    one.calls_to_prepare("a")
    return other


def assert_not_reproduced(process: ArrayBench) -> None:
    prepared = process.prepare(protocol.Prepare(Program(b"", "a", (VECTOR,), (VECTOR,), True), CHECKS))
    assert "does not reproduce its own result" in (prepared.error or "")


def test_results_that_another_process_has_seen_differ_are_no_reference(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(workspace, "LONG_CALL_S", 0.0)
    process = with_kept_results(tmp_path)
    monkeypatch.setattr(CopyProgram, "call", doubled)
    assert_not_reproduced(process)


def test_the_next_process_repeats_another_check_than_the_one_that_kept_the_results(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(workspace, "LONG_CALL_S", 0.0)
    process = with_kept_results(tmp_path)
    (file,) = tmp_path.iterdir()
    known = pickle.loads(file.read_bytes())
    wrong = (*known.results[:-1], tuple(array + 1 for array in known.results[-1]))
    file.write_bytes(pickle.dumps(replace(known, results=wrong)))
    assert_not_reproduced(process)


def test_results_with_other_weights_in_the_same_file_are_computed_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(workspace, "LONG_CALL_S", 0.0)
    weights, calls = tmp_path / "weights.irpa", list[int]()
    for text in ("weights", "", "other weights"):
        if text:
            weights.write_text(text)
        process = ArrayBench()
        process.references = KeptReferences(tmp_path)
        calls.append(process.calls_to_prepare("a", weights))
    assert calls == [len(CHECKS) + 1, 1, len(CHECKS) + 1]


def rooted(program: CopyProgram, inputs: Sequence[View], destinations: Sequence[View]) -> list[View]:
    """Return the roots of the input, which are no numbers where it is negative."""
    del program, destinations
    with np.errstate(invalid="ignore"):
        return [np.sqrt(inputs[0]).view(View)]


def overwriting(program: CopyProgram, inputs: Sequence[View], destinations: Sequence[View]) -> list[View]:
    """Return the input, and write zeros there."""
    result = inputs[0].copy()
    inputs[0][...] = 0
    return [result]


@pytest.mark.parametrize("computed", [rooted, overwriting])
def test_the_next_process_takes_the_inputs_as_the_one_that_kept_the_results(
    computed: Callable[..., list[View]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(workspace, "LONG_CALL_S", 0.0)
    monkeypatch.setattr(CopyProgram, "call", computed)
    for _ in range(2):
        process = ArrayBench()
        process.references = KeptReferences(tmp_path)
        prepared = process.prepare(protocol.Prepare(Program(b"", "a", (VECTOR,), (VECTOR,), False), CHECKS))
        assert prepared.error is None
        assert [process.verify(protocol.BASELINE, check) for check in range(len(CHECKS))] == [None, None]
    assert len([*tmp_path.iterdir()]) == 1


def test_results_of_short_baselines_and_large_ones_are_not_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    short, large = ArrayBench(), ArrayBench()
    short.references = large.references = KeptReferences(tmp_path)
    short.calls_to_prepare("a")
    monkeypatch.setattr(workspace, "LONG_CALL_S", 0.0)
    monkeypatch.setattr(kept_references, "MOST_BYTES", VECTOR.bytes)
    large.calls_to_prepare("a")
    assert not [*tmp_path.iterdir()]


def test_how_long_a_slow_baseline_takes_shows_in_its_check(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (bench, workspace):
        monkeypatch.setattr(module, "LONG_CALL_S", 0.0)
    tasks = ArrayBench(call_s=3600.0)
    prepared = tasks.prepare(protocol.Prepare(Program(b"", "a", (VECTOR,), (VECTOR,), True), CHECKS))
    assert 0 < prepared.call_s < 3600.0


def test_only_so_much_memory_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    two_tasks = 2 * len(CHECKS) * 2 * VECTOR.bytes  # an input and a reference per check
    monkeypatch.setattr(bench, "KEPT_BYTES", two_tasks)
    tasks = ArrayBench()
    assert [tasks.calls_to_prepare(name) for name in ("a", "b", "a", "c", "a", "b")] == [NEW, NEW, 1, NEW, 1, NEW]
    monkeypatch.setattr(bench, "KEPT_BYTES", 0)
    assert [tasks.calls_to_prepare(name) for name in ("c", "c", "a")] == [NEW, 1, NEW]


def test_a_task_whose_baseline_fails_leaves_the_others() -> None:
    tasks = ArrayBench()
    tasks.calls_to_prepare("a")
    bad = protocol.Prepare(Program(b"", "bad", (VECTOR,), (TensorSpec((10,), "f32"),), True), CHECKS)
    assert tasks.prepare(bad).error is not None
    with pytest.raises(RuntimeError, match="no baseline was prepared"):
        tasks.verify(protocol.BASELINE, 0)
    assert tasks.calls_to_prepare("a") == 1


def test_another_device_checks_against_the_same_references() -> None:
    one, other = ArrayDevice(), ArrayDevice()
    baseline, zeros = (Program(b"", name, (VECTOR,), (VECTOR,), True) for name in ("a", "zeros"))
    first: Any = Workspace(one, baseline, CHECKS)  # type: ignore[arg-type]
    there = first.on(other)
    assert (one.calls["a"], other.calls["a"]) == (NEW, 0)
    assert there.verify(other.load(baseline), 0) is None
    assert "elements" in there.verify(other.load(zeros), 0)
    assert first.verify(one.load(baseline), 1) is None
