"""Large arrays in blocks whose temporaries stay in a core's cache, instead of whole arrays in new memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mlir_sched.runner.element_types import Array

ELEMENTS = 1 << 15
"""Elements of a block: 256 KiB as f64."""


def blocks(array: Array) -> Iterator[Array]:
    """Yield the elements of an array of numbers as f64, in blocks of one dimension."""
    flat = np.ascontiguousarray(array).reshape(-1)
    for start in range(0, flat.size, ELEMENTS):
        yield flat[start : start + ELEMENTS].astype(np.float64)
