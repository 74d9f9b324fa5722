"""Programs of every element type run in IREE with the values that checks make, and compute what numpy computes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import iree.runtime as rt
import ml_dtypes
import numpy as np
import pytest

from mlir_sched.compiler.iree_compile import compile_to_bytes
from mlir_sched.payload import TensorSpec
from mlir_sched.runner.checks.check import Check, InputKind, Integers
from mlir_sched.runner.checks.inputs import make_inputs
from mlir_sched.runner.program import Program
from mlir_sched.runner.worker.comparison import poison_bits
from mlir_sched.runner.worker.device import LocalDevice
from mlir_sched.runner.worker.workspace import Workspace
from mlir_sched.targets import detect_target
from mlir_sched.targets.target import LOCAL_SYNC
from mlir_sched.tensors.element_types import DTYPES, Array

SHAPE = (6, 8)
WIDENED: dict[str, tuple[str, str, Callable[[Array], Array]]] = {
    "i4": ("arith.extsi", "i32", lambda x: x.astype(np.int32)),
    "i2": ("arith.extui", "i32", lambda x: x.astype(np.int32) & 3),
    "i8": ("arith.uitofp", "f32", lambda x: x.view(np.uint8).astype(np.float32)),
    **{
        kind: ("arith.extf", "f32", lambda x: x.astype(np.float32))
        for kind in ("f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ")
    },
}
"""How a program reads each type: the op, its result's type, and what numpy makes of the values."""
DRAWN = (InputKind.EXACT, InputKind.RANDOM, InputKind.POSITIVE)
CHECKS = tuple(Check(kind, seed, integers=Integers.WHOLE) for seed, kind in enumerate(DRAWN))


@cache
def cpu() -> LocalDevice:
    """Return the one device of these tests: it has to outlive all buffers."""
    return LocalDevice(rt.VmInstance(), LOCAL_SYNC)


def program_text(kind: str) -> str:
    """Return a program that widens a tensor of a type, and returns the sum of the tensor and itself in its own type."""
    cast, wide, _ = WIDENED[kind]
    add = "arith.addi" if kind[0] == "i" else "arith.addf"
    rows, columns = SHAPE
    return f"""
#m = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<{rows}x{columns}x{kind}>) -> (tensor<{rows}x{columns}x{wide}>, tensor<{rows}x{columns}x{kind}>) {{
  %e = tensor.empty() : tensor<{rows}x{columns}x{wide}>
  %f = tensor.empty() : tensor<{rows}x{columns}x{kind}>
  %w = linalg.generic {{indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}}
    ins(%x : tensor<{rows}x{columns}x{kind}>) outs(%e : tensor<{rows}x{columns}x{wide}>) {{
  ^bb0(%a: {kind}, %o: {wide}):
    %r = {cast} %a : {kind} to {wide}
    linalg.yield %r : {wide}
  }} -> tensor<{rows}x{columns}x{wide}>
  %d = linalg.generic {{indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}}
    ins(%x : tensor<{rows}x{columns}x{kind}>) outs(%f : tensor<{rows}x{columns}x{kind}>) {{
  ^bb0(%a: {kind}, %o: {kind}):
    %r = {add} %a, %a : {kind}
    linalg.yield %r : {kind}
  }} -> tensor<{rows}x{columns}x{kind}>
  return %w, %d : tensor<{rows}x{columns}x{wide}>, tensor<{rows}x{columns}x{kind}>
}}
"""  # noqa: E501


def compiled(folder: Path, text: str) -> bytes:
    (folder / "model.mlir").write_text(text)
    return compile_to_bytes(folder / "model.mlir", detect_target("llvm-cpu", 1).flags)


@pytest.mark.promise
@pytest.mark.sweep("landing")
@pytest.mark.parametrize("kind", WIDENED)
def test_values_of_a_type_go_to_iree_and_back(kind: str, tmp_path: Path) -> None:
    _, wide, widened = WIDENED[kind]
    taken = TensorSpec(SHAPE, kind)
    outputs = TensorSpec(SHAPE, wide), taken
    program = Program(compiled(tmp_path, program_text(kind)), "main", (taken,), outputs, writes_into_arguments=False)
    device = cpu()
    made = Workspace(device, program, CHECKS)
    for case in made._cases:
        read, doubled = case.references
        np.testing.assert_array_equal(read, widened(case.inputs[0]))
        expected = (case.inputs[0].astype(np.float32) * 2).astype(np.float32)
        if kind[0] == "f":
            np.testing.assert_array_equal(doubled.astype(np.float32), expected)
        else:
            np.testing.assert_array_equal((doubled.astype(int) - 2 * case.inputs[0].astype(int)) % 4, 0)
    assert all(made.verify(device.load(program), index) is None for index in range(len(CHECKS)))


@pytest.mark.promise
def test_complex_numbers_are_compared_in_both_parts(tmp_path: Path) -> None:
    spec = TensorSpec((16,), "complex<f32>")
    text = """
func.func @main(%x: tensor<16xcomplex<f32>>) -> tensor<16xcomplex<f32>> {
  %e = tensor.empty() : tensor<16xcomplex<f32>>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%x : tensor<16xcomplex<f32>>) outs(%e : tensor<16xcomplex<f32>>) {
  ^bb0(%a: complex<f32>, %o: complex<f32>):
    %s = complex.mul %a, %a : complex<f32>
    linalg.yield %s : complex<f32>
  } -> tensor<16xcomplex<f32>>
  return %r : tensor<16xcomplex<f32>>
}
"""
    right = Program(compiled(tmp_path, text), "main", (spec,), (spec,), writes_into_arguments=False)
    wrong = Program(
        compiled(tmp_path, text.replace("linalg.yield %s", "%c = complex.conj %s : complex<f32>\n    linalg.yield %c")),
        "main", (spec,), (spec,), writes_into_arguments=False,
    )  # fmt: skip
    device = cpu()
    made = Workspace(device, right, (Check(InputKind.RANDOM, 1, tolerance=1e-5),))
    (values,), (squares,) = made._cases[0].inputs, made._cases[0].references
    np.testing.assert_allclose(squares, values**2, rtol=1e-5)
    assert made.verify(device.load(right), 0) is None
    assert "too far off" in (made.verify(device.load(wrong), 0) or "")


@pytest.mark.parametrize("element_type", ["i4", "i2"])
@pytest.mark.parametrize("shape", [(2, 4), (3, 4), (8,)])
def test_packed_buffers_hold_poison_and_values(element_type: str, shape: tuple[int, ...]) -> None:
    spec, device = TensorSpec(shape, element_type), cpu()
    (values,) = make_inputs([spec], Check(InputKind.EXACT, 1, integers=Integers.WHOLE))
    view = device.buffer(values, spec)
    assert view.byte_length == spec.bytes
    np.testing.assert_array_equal(device.read(view, spec), values)
    device.write(view, spec, poison_bits(spec))
    assert set(device.read(view, spec).view(np.uint8).flat) == {int(poison_bits(spec))}


def test_an_8_bit_float_without_a_number_for_poison_may_be_nan() -> None:
    spec = TensorSpec((4,), "f8E4M3FN")
    device = cpu()
    values = np.array([1, np.nan, 448, -1], ml_dtypes.float8_e4m3fn)
    np.testing.assert_array_equal(device.read(device.buffer(values, spec), spec).view(np.uint8), values.view(np.uint8))


@pytest.mark.parametrize("element_type", DTYPES)
def test_no_input_is_nan(element_type: str) -> None:
    for kind in DRAWN:
        (values,) = make_inputs([TensorSpec((5000,), element_type)], Check(kind, 1, integers=Integers.WHOLE))
        assert not (values != values).any()


@pytest.mark.promise
def test_empty_results_beside_others_need_not_depend_on_the_inputs(tmp_path: Path) -> None:
    text = """
func.func @main(%x: tensor<0x4xf32>, %y: tensor<4xf32>) -> (tensor<0x4xf32>, tensor<4xf32>) {
  %s = arith.addf %y, %y : tensor<4xf32>
  %t = arith.addf %x, %x : tensor<0x4xf32>
  return %t, %s : tensor<0x4xf32>, tensor<4xf32>
}
"""
    empty, some = TensorSpec((0, 4), "f32"), TensorSpec((4,), "f32")
    program = Program(compiled(tmp_path, text), "main", (empty, some), (empty, some), writes_into_arguments=False)
    made = Workspace(cpu(), program, CHECKS)
    assert made.telling.constant == ()
