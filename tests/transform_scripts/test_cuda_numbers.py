"""The numbers of random CUDA candidates, on a machine that runs PTX.

The machine copies at once what ``cp.async`` copies beside the arithmetic: a wait that is missing does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from contraction_payloads import batch_matmul_transposed_b, matmul, vecmat
from convolution_payloads import named
from fixed_targets import FIXED_CUDA, space_of
from numpy.typing import NDArray
from payload_text import Payload
from payloads import column_sum, row_sum
from ptx import ptx_of
from ptx_machine import run_kernel
from reduction_payloads import MAXIMUM, reduced

from mlir_sched.compiler import CompilerPool
from mlir_sched.gpu_model.ptx import read_kernel
from mlir_sched.tasks.task import Task

pytestmark = pytest.mark.landing

Array = NDArray[np.float32]
SAMPLES = 2


@dataclass(frozen=True)
class Case:
    """A program and what it computes.

    Attributes:
        payload: The program.
        compute: The same in numpy.
        shapes: Shapes of the inputs.
    """

    payload: Payload
    compute: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]


def convolved(image: Array, taps: Array) -> Array:
    """Return a convolution with channels last, without padding."""
    rows, columns = (image.shape[dim] - taps.shape[dim - 1] + 1 for dim in (1, 2))
    windows = np.lib.stride_tricks.sliding_window_view(image, taps.shape[:2], axis=(1, 2))
    assert windows.shape[1:3] == (rows, columns)
    return np.asarray(np.einsum("nhwcrs,rscf->nhwf", windows, taps))


CASES: Mapping[str, Case] = {
    "matmul": Case(matmul(32, 64, 48), np.matmul, ((32, 48), (48, 64))),
    "vecmat": Case(vecmat(64, 128), np.matmul, ((1, 128), (128, 64))),
    "batch_matmul": Case(
        batch_matmul_transposed_b(2, 16, 32, 24), lambda a, b: a @ b.transpose(0, 2, 1), ((2, 16, 24), (2, 32, 24))
    ),
    "convolution": Case(
        named("conv_2d_nhwc_hwcf", (1, 10, 10, 4), (3, 3, 4, 16), (1, 8, 8, 16)),
        convolved,
        ((1, 10, 10, 4), (3, 3, 4, 16)),
    ),
    "row_sum": Case(row_sum(48, 128), lambda a: a.sum(axis=1), ((48, 128),)),
    "column_sum": Case(column_sum(96, 64), lambda a: a.sum(axis=0), ((96, 64),)),
    "maximum": Case(reduced((64, 48, 32), (1,), by=MAXIMUM), lambda a: a.max(axis=1), ((64, 48, 32),)),
}


@pytest.mark.sweep("nightly")
@pytest.mark.parametrize("name", CASES)
def test_random_candidates_are_right(
    cuda_task_for: Callable[[str | Payload], Task], cuda_pool: CompilerPool, name: str
) -> None:
    case, rng = CASES[name], np.random.default_rng(7)
    task = cuda_task_for(case.payload)
    space = space_of(task, FIXED_CUDA)
    inputs = [rng.integers(-4, 5, shape).astype(np.float32) for shape in case.shapes]
    expected = np.asarray(case.compute(*inputs))
    traces = [space.sample(rng, sketch) for sketch in space.sketches for _ in range(SAMPLES)]
    for index, result in cuda_pool.compile(task.source, [space.script(trace) for trace in traces]):
        assert result.launch is not None, (traces[index], result.failure)
        found = np.full(expected.shape, np.nan, np.float32)
        run_kernel(read_kernel(ptx_of(result)), result.launch, [*inputs, found])
        np.testing.assert_array_equal(found, expected, f"{traces[index].sketch} {traces[index].values}")
