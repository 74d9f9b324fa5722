"""The constants of models: which inputs of dispatches they are, and how far apart two reads of the same one are."""

from __future__ import annotations

from pathlib import Path

import iree_cases as cases
import pytest

from mlir_sched.tasks.worker.constants import MOST_BYTES

pytestmark = pytest.mark.promise

PRODUCT = """
  func.func private @product(%x: tensor<64x256xf32>, %w: tensor<256xNxf32>) -> tensor<64xNxf32> {
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<64xNxf32>
    %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xNxf32>) -> tensor<64xNxf32>
    %y = linalg.matmul ins(%x, %w : tensor<64x256xf32>, tensor<256xNxf32>) outs(%fill : tensor<64xNxf32>)
        -> tensor<64xNxf32>
    return %y : tensor<64xNxf32>
  }
"""


def program(*operands: str, columns: int) -> str:
    """Return a program of one product per operand, which is a global (``w0``, ``w1``) or the argument ``b``."""
    weights = sorted({operand for operand in operands if operand != "b"})
    lines = [f"    %{name} = util.global.load @{name} : tensor<256xNxf32>" for name in weights]
    types = "(tensor<64x256xf32>, tensor<256xNxf32>) -> tensor<64xNxf32>"
    lines += [f"    %y{i} = func.call @product(%a, %{name}) : {types}" for i, name in enumerate(operands)]
    results = ", ".join(f"%y{i}" for i in range(len(operands)))
    returned = ", ".join(["tensor<64xNxf32>"] * len(operands))
    text = [
        "module {",
        *(f"  util.global private mutable @{name} : tensor<256xNxf32>" for name in weights),
        PRODUCT,
        f"  func.func @main(%a: tensor<64x256xf32>, %b: tensor<256xNxf32>) -> ({returned}) {{",
        *lines,
        f"    return {results} : {returned}",
        "  }",
        "}",
    ]
    return "\n".join(text).replace("N", str(columns))


def test_what_all_calls_take_from_the_model_is_constant(tmp_path: Path) -> None:
    (task,) = cases.model_of(tmp_path, program("w0", "w1", columns=2048)).tasks
    assert (task.weight, task.constants) == (2, (1,))
    assert task.reuse_bytes == 2 * 256 * 2048 * 4


def test_what_one_call_takes_from_the_user_is_not(tmp_path: Path) -> None:
    (task,) = cases.model_of(tmp_path, program("w0", "b", columns=2048)).tasks
    assert (task.weight, task.constants, task.reuse_bytes) == (2, (), 0)


def test_what_a_function_changes_between_calls_is_not(tmp_path: Path) -> None:
    store = "    util.global.store %b, @w0 : tensor<256x2048xf32>\n    return"
    (task,) = cases.model_of(tmp_path, program("w0", columns=2048).replace("    return %y0", f"{store} %y0")).tasks
    assert (task.constants, task.reuse_bytes) == ((), 0)


@pytest.mark.sweep("landing")
@pytest.mark.parametrize(("columns", "reused"), [(2048, 2**21), (2049, 2**22), (2**19, MOST_BYTES)])
def test_the_bytes_are_those_of_the_whole_model_in_powers_of_two(tmp_path: Path, columns: int, reused: int) -> None:
    assert cases.task_of(tmp_path, program("w0", columns=columns)).reuse_bytes == reused


def test_a_small_model_keeps_its_constants_in_the_cache(tmp_path: Path) -> None:
    task, of_argument = (cases.task_of(tmp_path, program(name, columns=2047)) for name in ("w0", "b"))
    assert (task.constants, task.reuse_bytes) == ((), 0)
    assert task.key == of_argument.key


@pytest.mark.landing
def test_cold_and_warm_constants_have_records_of_their_own(tmp_path: Path) -> None:
    cold, colder, warm = (
        cases.model_of(tmp_path, program(*operands, columns=2048)).tasks[0].key
        for operands in (("w0",), ("w0", "w1"), ("b",))
    )
    assert len({cold, colder, warm}) == 3
