"""Reductions to one number in a single dispatch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from folders import ROOT
from iree_cases import FLAGS
from rewriting import applies, compiled_to, library_for, run, write

from mlir_sched.compiler import compile_to_bytes
from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.program.rewrites.dispatches.single_dispatch import SingleDispatch

pytestmark = pytest.mark.promise

NORM = (ROOT / "benchmarks" / "models" / "norm.mlir").read_text()


def test_single_dispatch_computes_the_same(tmp_path: Path) -> None:
    model = write(tmp_path, NORM)
    flags = library_for(SingleDispatch(), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {"single_dispatch": 1}
    assert compiled_to(model, FLAGS, "flow").count("flow.executable private") == 2
    assert compiled_to(model, flags, "flow").count("flow.executable private") == 1
    values = np.random.default_rng(0).standard_normal((1, 256, 256), np.float32)
    np.testing.assert_allclose(run(compile_to_bytes(model, flags), [values], "norm"), [np.linalg.norm(values)], 1e-5)


@pytest.mark.parametrize(
    "text",
    [
        NORM.replace("256x256", "2048x1024"),
        NORM + "func.func @same(%x: tensor<1xf32>) -> tensor<1xf32> { return %x : tensor<1xf32> }",
        (ROOT / "benchmarks" / "models" / "softmax.mlir").read_text(),
    ],
    ids=["large", "two functions", "no full reduction"],
)
def test_a_program_that_gains_nothing_as_one_dispatch_is_left(text: str, tmp_path: Path) -> None:
    assert not applies(SingleDispatch(), write(tmp_path, text))
