"""Convolutions of patches as products with packed weights: the same numbers; and convolutions that stay as they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from iree_cases import FLAGS
from product_cases import Case
from rewriting import applies, compiled_to, library_for, run, write

from mlir_sched.compiler import compile_to_bytes
from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.program.rewrites.products.packed import PackedWeights
from mlir_sched.program.rewrites.products.patches import PatchProducts

pytestmark = pytest.mark.promise


def strides(down: int, right: int) -> str:
    return f"{{strides = dense<[{down}, {right}]> : tensor<2xi64>}}"


PATCHES = Case("conv_2d_nchw_fchw", (1, 3, 12, 20), (64, 3, 4, 4), (1, 64, 3, 5), strides(4, 4))


@pytest.mark.sweep("landing")
@pytest.mark.parametrize(
    "case",
    [PATCHES, Case("conv_2d_nchw_fchw", (1, 8, 8, 6), (48, 8, 2, 3), (1, 48, 4, 2), strides(2, 3))],
    ids=["square", "oblong"],
)
def test_patches_are_multiplied_by_packed_weights(case: Case, tmp_path: Path) -> None:
    model = write(tmp_path, case.text())
    expected = run(compile_to_bytes(model, FLAGS), case.inputs())
    assert np.unique(expected).size > 100
    flags = library_for(PackedWeights(), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {"patch_products": 1, "packed_weights": 1}
    flow = compiled_to(model, flags, "flow")
    assert "conv_2d" not in flow
    np.testing.assert_array_equal(run(compile_to_bytes(model, flags), case.inputs()), expected)


@pytest.mark.parametrize(
    "case",
    [
        replace(PATCHES, rows=(2, 3, 12, 20), result=(2, 64, 3, 5)),
        replace(PATCHES, result=(1, 64, 5, 9), attributes=strides(2, 2)),
        replace(PATCHES, rows=(1, 3, 13, 20)),
        replace(PATCHES, weights=(8, 3, 4, 4), result=(1, 8, 3, 5)),
        Case("conv_2d_nchw_fchw", (1, 64, 3, 5), (64, 64, 1, 1), (1, 64, 3, 5)),
    ],
    ids=["two images", "windows that overlap", "a row left over", "few filters", "one tap"],
)
def test_other_convolutions_stay_as_they_are(case: Case, tmp_path: Path) -> None:
    assert not applies(PatchProducts(), write(tmp_path, case.text()))
