"""Programs whose weights are encoded: same numbers, and the memory of plain IREE while they are loaded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import iree.runtime as rt
import numpy as np
import pytest
from rewriting import library_for, run, write

from mlir_sched.compiler import compile_to_bytes
from mlir_sched.compiler.flags import library_in, without_library
from mlir_sched.errors import UserError
from mlir_sched.program.building import build_variant
from mlir_sched.program.encoding import FROM_FLOW, EncodedProgram, encoded_program
from mlir_sched.program.loading import load_cost
from mlir_sched.program.plan import Plan
from mlir_sched.program.rewrites.folding.folded_constants import FoldedConstants
from mlir_sched.program.variant import Variant
from mlir_sched.program.whole_program import CompiledModel
from mlir_sched.runner import RunnerOptions
from mlir_sched.targets.target import Target
from mlir_sched.tensors.parameters import ParameterFile

pytestmark = pytest.mark.promise

SIZE = 2048
ROWS, MATRIX, VECTOR = f"tensor<4x{SIZE}xf32>", f"tensor<{SIZE}x{SIZE}xf32>", f"tensor<{SIZE}xf32>"
SCALED = f"""
util.global private @weights = #flow.parameter.named<"model"::"weights"> : {MATRIX}
util.global private @numbers = #flow.parameter.named<"model"::"numbers"> : {VECTOR}
func.func @main(%image: {ROWS}) -> {ROWS} {{
  %weights = util.global.load @weights : {MATRIX}
  %numbers = util.global.load @numbers : {VECTOR}
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {ROWS}
  %start = linalg.fill ins(%zero : f32) outs(%empty : {ROWS}) -> {ROWS}
  %sums = linalg.matmul ins(%image, %weights : {ROWS}, {MATRIX}) outs(%start : {ROWS}) -> {ROWS}
  %scaled = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins(%sums, %numbers : {ROWS}, {VECTOR}) outs(%empty : {ROWS}) {{
  ^bb0(%x: f32, %n: f32, %o: f32):
    %y = arith.mulf %x, %n : f32
    linalg.yield %y : f32
  }} -> {ROWS}
  return %scaled : {ROWS}
}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model and its weights."""
    path = tmp_path_factory.mktemp("encoding").resolve()
    rng, sizes = np.random.default_rng(0), {"weights": (SIZE, SIZE), "numbers": (SIZE,)}
    arrays = {name: rng.standard_normal(size).astype(np.float32) for name, size in sizes.items()}
    rt.save_archive_file(arrays, path / "weights.irpa")
    write(path, SCALED)
    return path


@pytest.fixture(scope="module")
def folded_flags(folder: Path) -> tuple[str, ...]:
    """Flags under which the scale goes into the weights."""
    return library_for(FoldedConstants(), folder / "model.mlir", folder)


@contextmanager
def encoding(folder: Path, flags: tuple[str, ...]) -> Iterator[tuple[EncodedProgram, bytes]]:
    """Yield a program with its encoded weights, and its code."""
    weights, library = ParameterFile("model", str(folder / "weights.irpa")), library_in(flags)
    with encoded_program(folder / "model.mlir", without_library(flags), library, [weights]) as encoded:
        yield encoded, compile_to_bytes(encoded.program, (*flags, FROM_FLOW))


def result(vmfb: bytes, weights: str | Path) -> np.ndarray:
    image = np.random.default_rng(1).standard_normal((4, SIZE)).astype(np.float32)
    return np.array(run(vmfb, [image], weights=weights))


def test_encoded_weights_give_the_same_numbers(folder: Path, folded_flags: tuple[str, ...]) -> None:
    whole = compile_to_bytes(folder / "model.mlir", folded_flags)
    expected = result(whole, folder / "weights.irpa")
    with encoding(folder, folded_flags) as (encoded, vmfb):
        (file,) = encoded.files
        assert (file.encoded, file.kept) == (1, 0)
        assert 4 * SIZE * SIZE <= file.bytes < 4 * SIZE * SIZE + 2**16
        np.testing.assert_array_equal(result(vmfb, file.path), expected)
        with pytest.raises(ValueError, match="no parameter found"):
            result(vmfb, folder / "weights.irpa")
        with pytest.raises(ValueError, match="no parameter found"):
            result(whole, file.path)


def test_loading_a_program_with_encoded_weights_takes_the_memory_of_the_plain_program(
    folder: Path, folded_flags: tuple[str, ...], here: Target
) -> None:
    weights = (ParameterFile("model", str(folder / "weights.irpa")),)
    plain = build_variant(folder / "model.mlir", here, Variant(Plan()), weights)
    options = RunnerOptions.for_device(here.driver)
    before = load_cost(options, plain.model, plain.compiled())
    with encoding(folder, folded_flags) as (encoded, vmfb):
        files = tuple(ParameterFile(file.scope, file.path) for file in encoded.files)
        after = load_cost(options, replace(plain.model, parameters=files), CompiledModel(vmfb))
    assert after.peak_bytes <= 1.2 * before.peak_bytes
    assert after.resident_bytes <= 1.2 * before.resident_bytes


def test_programs_without_parameters_and_files_without_some_are_refused(folder: Path, tmp_path: Path) -> None:
    rt.save_archive_file({"weights": np.zeros((SIZE, SIZE), np.float32)}, tmp_path / "less.irpa")
    file = ParameterFile("model", str(tmp_path / "less.irpa"))
    flags = ("--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu")
    for files, expected in ([], "add --parameters model=FILE"), ([file], "model has the parameter numbers"):
        with (
            pytest.raises(UserError, match=expected),
            encoded_program(folder / "model.mlir", flags, None, files),
        ):
            pass
    inline = SCALED.replace('#flow.parameter.named<"model"::"weights">', "dense<1.0>").replace(
        '#flow.parameter.named<"model"::"numbers">', "dense<2.0>"
    )
    with (
        pytest.raises(UserError, match="the program reads no parameters"),
        encoded_program(write(tmp_path, inline), flags, None, [file]),
    ):
        pass
