"""What the compiler prints, and where scripts are found, says which script is at fault."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from mlir_sched.compiler import TunedDispatch
from mlir_sched.library.library import TunedSequence
from mlir_sched.program.blame import Fault, faults_in, faults_named
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.trace import Trace

SPACE, TRACE = cast("DesignSpace", None), Trace("sketch", ())
LIBRARY = """module attributes {transform.with_named_sequence} {
  transform.named_sequence @tuned_0(%f: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "s"} {
    transform.yield
  }
  transform.named_sequence @match_tuned_0(%f: !transform.any_op {transform.readonly}) -> !transform.any_op {
    transform.yield %f : !transform.any_op
  }
  transform.named_sequence @tuned_1(%f: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "s"} {
    transform.yield
  }
}
"""


def sequence(number: int, *, only: tuple[str, ...] = ()) -> TunedSequence:
    return TunedSequence(
        f"tuned_{number}", "", SPACE, TRACE, {}, f"main_dispatch_{number}", code=f"code {number}", only=only
    )


SEQUENCES = {"a": sequence(0), "b": sequence(1)}
NAMES = {"main_dispatch_0", "main_dispatch_1", "main_dispatch_2"}


@pytest.mark.parametrize(
    ("printed", "blamed"),
    [
        ("{library}:3:5: error: it fails\n note: func.func @main_dispatch_0", {"a": False}),
        ("{library}:6:5: error: it fails", {"a": False}),
        ("{library}:9:5: error: it fails\n note: func.func @main_dispatch_2", {"b": True}),
        ("{library}:9:5: error: it fails\n note: func.func @main_dispatch_0", {"b": True}),
        ("model.mlir:9:5: error: too much stack\n note: func.func @main_dispatch_1()", {"b": False}),
        ("model.mlir:3:5: error: too much memory", {}),
    ],
)
def test_scripts_are_named_by_their_lines_or_their_dispatches(
    printed: str, blamed: dict[str, bool], tmp_path: Path
) -> None:
    library = tmp_path / "library.mlir"
    library.write_text(LIBRARY)
    faults = faults_named(SEQUENCES, library, printed.format(library=library), NAMES)
    assert {key: fault.elsewhere for key, fault in faults.items()} == blamed
    assert all(fault.elsewhere or "it fails" in fault.reason or "stack" in fault.reason for fault in faults.values())


def applied(*pairs: tuple[int, int]) -> list[TunedDispatch]:
    """Return dispatches with sequences, by number, each with the code that the sequence makes."""
    return [TunedDispatch(f"main_dispatch_{d}", f"tuned_{s}", f"code {s}") for d, s in pairs]


def test_scripts_where_they_belong_are_no_fault() -> None:
    assert not faults_in(SEQUENCES, applied((0, 0), (1, 1)), NAMES)


def test_a_dispatch_that_is_no_task_may_have_the_script_of_one_with_the_same_code() -> None:
    assert not faults_in(SEQUENCES, applied((0, 0), (1, 1), (7, 0)), NAMES)


def test_a_script_that_is_nowhere_is_a_fault() -> None:
    assert faults_in(SEQUENCES, applied((0, 0)), NAMES) == {
        "b": Fault("it was not applied to @main_dispatch_1 in the program")
    }


@pytest.mark.parametrize("only", [(), ("main_dispatch_0",)])
def test_a_script_on_another_task_is_kept_from_it_once(only: tuple[str, ...]) -> None:
    faults = faults_in({"a": sequence(0, only=only), "b": sequence(1)}, applied((0, 0), (1, 1), (2, 0)), NAMES)
    assert {key: fault.elsewhere for key, fault in faults.items()} == {"a": not only}


def test_a_script_whose_dispatch_another_one_took_is_not_at_fault() -> None:
    assert [*faults_in(SEQUENCES, applied((0, 0), (1, 0)), NAMES)] == ["a"]


def test_other_code_than_was_measured_is_a_fault() -> None:
    found = [TunedDispatch("main_dispatch_0", "tuned_0", "other"), *applied((1, 1))]
    assert faults_in(SEQUENCES, found, NAMES) == {
        "a": Fault("its code in the program is not the code that was measured")
    }
