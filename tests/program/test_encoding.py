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
from scaled_product import SCALED, SIZE, write_weights

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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model and its weights."""
    path = tmp_path_factory.mktemp("encoding").resolve()
    write_weights(path / "weights.irpa")
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
