"""The calibration kernel: a fixed computation that is bound by the multiply-add units, which hardware threads share."""

from __future__ import annotations

import numpy as np

SIZE = 64
REPEATS = 8
"""The kernel multiplies two 64x64 f32 matrices 8 times: 48 KB and 4 MFLOP, some 50 us on one AVX-512 core."""


class CalibrationKernel:
    """The kernel with its matrices, which live in the first-level cache."""

    def __init__(self) -> None:
        self._left = np.full((SIZE, SIZE), 0.5, dtype=np.float32)
        self._right = np.full((SIZE, SIZE), 0.25, dtype=np.float32)
        self._product = np.empty((SIZE, SIZE), dtype=np.float32)

    def run(self) -> None:
        """Run the kernel once, on the current core."""
        for _ in range(REPEATS):
            np.matmul(self._left, self._right, out=self._product)
