"""Large arrays in blocks whose temporaries stay in a core's cache, instead of whole arrays in new memory."""

from collections.abc import Iterator

import numpy as np

from mlir_sched.tensors.element_types import Array

ELEMENTS = 1 << 13
"""Elements of a block: 64 KiB as f64. Memory of 128 KiB or more is new for every array in the runner's process
(``client.ENVIRONMENT``), and new memory takes longer than the arithmetic."""


def parts(array: Array) -> Iterator[Array]:
    """Yield the elements of an array in blocks of one dimension."""
    flat = np.ascontiguousarray(array).reshape(-1)
    for start in range(0, flat.size, ELEMENTS):
        yield flat[start : start + ELEMENTS]


def blocks(array: Array) -> Iterator[Array]:
    """Yield the elements of an array of numbers as f64, in blocks of one dimension."""
    for part in parts(array):
        yield part.astype(np.float64)
