"""The values that a user gives are read as iree-run-module reads them, and fit the program or are refused in a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlir_sched.errors import UserError
from mlir_sched.payload import TensorSpec
from mlir_sched.tensors.given_values import Value, fitted, function_values
from mlir_sched.tensors.values import TensorValue

F32 = TensorSpec((2, 2), "f32")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2x2xf32=1 2 3 4", np.array([[1, 2], [3, 4]], np.float32)),
        ("2x2xf32=[[1, 2], [3, 4.5]]", np.array([[1, 2], [3, 4.5]], np.float32)),
        ("2x2xi32=7", np.full((2, 2), 7, np.int32)),
        ("3xbf16", np.zeros(3, ml_dtypes.bfloat16)),
        ("f32=-0.5", np.array(-0.5, np.float32)),
        ("2xui8=255 1", np.array([255, 1], np.uint8)),
        ("2xi1=1 false", np.array([True, False])),
        ("0x4xf32", np.zeros((0, 4), np.float32)),
        ("3.5", np.array(3.5)),
        ("-3", np.array(-3)),
    ],
)
def test_a_text_is_a_tensor_as_iree_run_module_reads_it(text: str, expected: np.ndarray[Any, Any]) -> None:
    ((value,),) = [each.inputs for each in function_values([text])]
    assert value.array.dtype == expected.dtype
    np.testing.assert_array_equal(value.array, expected)


def test_files_folders_and_arrays_are_values_in_their_order(tmp_path: Path) -> None:
    first, second = np.ones((2, 2), np.float32), np.arange(4, dtype=np.int64)
    with (tmp_path / "both.npy").open("wb") as file:
        np.save(file, first)
        np.save(file, second)
    (tmp_path / "raw.bin").write_bytes(first.tobytes())
    for name, array in (("10", second), ("9", first)):
        (tmp_path / "eleven" / "step").mkdir(parents=True, exist_ok=True)
        np.save(tmp_path / "eleven" / "step" / f"{name}.npy", array)
    for number in range(9):
        np.save(tmp_path / "eleven" / "step" / f"{number}.npy", first)
    texts: list[Value] = [f"@{tmp_path}/both.npy", f"2x2xf32=@{tmp_path}/raw.bin", first, tmp_path / "both.npy"]
    (values,) = function_values(texts)
    kinds = [value.array.dtype.kind for value in values.inputs]
    assert kinds == ["f", "i", "f", "f", "f", "i"]
    (step,) = function_values([str(tmp_path / "eleven")])
    assert (step.function, [value.array.dtype.kind for value in step.inputs]) == ("step", ["f"] * 10 + ["i"])


def test_values_name_their_function_in_the_text_or_by_a_mapping() -> None:
    named = function_values(["prefill:4xf32=1", "decode:f32=2", "prefill:4xf32=3"], ["decode:f32=9"])
    assert [(each.function, len(each.inputs), len(each.reference)) for each in named] == [
        ("prefill", 2, 0),
        ("decode", 1, 1),
    ]
    by_name = function_values({"prefill": ["4xf32=1", "4xf32=3"], "decode": [np.float32(2)]}, {"decode": ["f32=9"]})
    assert by_name == named


def test_values_are_equal_by_their_elements_and_cannot_be_changed_behind_a_run() -> None:
    array = np.ones(3, np.float32)
    value = TensorValue.of(array, "an array")
    array[:] = 2
    assert value == TensorValue.of(np.ones(3, np.float32), "another source")
    assert value != TensorValue.of(np.ones((3, 1), np.float32), "an array")
    assert value.array[0] == 1
    assert not value.array.flags.writeable


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("@missing.npy", "missing.npy: no such file"),
        ("2x2xf32=@missing.bin", "missing.bin: no such file"),
        ("2x2xf32=1 2 3", "3 elements for a tensor of 4"),
        ("2x2xquux=1", "unknown element type quux"),
        ("2xi8=300", "neither @FILE.npy, nor"),
        ("2xi32=0.5", "neither @FILE.npy, nor"),
        ("nonsense", "neither @FILE.npy, nor"),
    ],
)
def test_what_is_no_value_is_refused_in_a_line(given: str, expected: str) -> None:
    with pytest.raises(UserError, match=expected) as refused:
        function_values([given])
    assert "\n" not in str(refused.value)


def test_files_that_are_no_arrays_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    (tmp_path / "text.npy").write_text("hello")
    (tmp_path / "short.bin").write_bytes(b"123")
    (tmp_path / "empty").mkdir()
    np.save(tmp_path / "1.npy", np.ones(1))
    for text, expected in (
        ("@objects.npy", "no array of numpy.save"),
        ("@text.npy", "no array of numpy.save"),
        ("2xf32=@short.bin", "3 bytes instead of 8"),
        ("empty", "neither 0.npy nor"),
        (".", "0.npy, 1.npy and so on"),
    ):
        with pytest.raises(UserError, match=expected):
            function_values([text.replace("@", f"@{tmp_path}/") if "@" in text else str(tmp_path / text)])


def test_a_reference_without_inputs_is_refused() -> None:
    with pytest.raises(UserError, match="a reference is given, but no inputs"):
        function_values([], ["4xf32=1"])


@pytest.mark.parametrize(
    ("given", "spec", "expected"),
    [
        (["4xf32=1"], F32, "number 0: 4xf32=1 is 4xf32, but the program has 2x2xf32"),
        (["2x2xf64=1"], F32, "is 2x2xf64, but the program has 2x2xf32"),
        (["2x2xf32", "2x2xf32"], F32, "2 values are given for the input of @f, which takes 1: 2x2xf32"),
        (["0.5"], TensorSpec((), "i32", by_value=True), "0.5 is f64, but the program has i32"),
        (["7"], F32, "7 is i64, but the program has 2x2xf32"),
    ],
)
def test_values_that_do_not_fit_are_refused(given: list[str], spec: TensorSpec, expected: str) -> None:
    (values,) = function_values(given)
    with pytest.raises(UserError, match=expected):
        fitted(values.inputs, [spec], "input of @f")


def test_values_fit_by_their_bits_where_numpy_has_no_such_type(tmp_path: Path) -> None:
    narrow = np.array([1.5, -2], ml_dtypes.bfloat16)
    np.save(tmp_path / "narrow.npy", narrow)
    (values,) = function_values([tmp_path / "narrow.npy", np.array([255], np.uint8), "3"])
    specs = [TensorSpec((2,), "bf16"), TensorSpec((1,), "i8"), TensorSpec((), "f32", by_value=True)]
    found = [value.array for value in fitted(values.inputs, specs, "input of @f")]
    assert [str(array.dtype) for array in found] == ["bfloat16", "int8", "float32"]
    assert [array.astype(float).tolist() for array in found] == [[1.5, -2.0], [-1.0], 3.0]
