"""Choice of candidates that lie far apart in feature space."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def spread_out(features: NDArray[np.float32], count: int) -> list[int]:
    """Return the indices of ``count`` rows far from each other, the first row first.

    Each next row is the row that is farthest from its nearest chosen row (the first of equals). Features are scaled to
    unit variance; constant features do not count.

    Args:
        features: ``[n_rows, n_features]``.
        count: Number of rows to choose, 1..``n_rows``.

    Source: farthest-point traversal (Gonzalez, 1985).
    """
    rows = features.astype(np.float64)
    spread = rows.std(axis=0)
    rows = rows[:, spread > 0] / spread[spread > 0]
    chosen = [0]
    nearest = np.full(len(rows), np.inf)
    while len(chosen) < count:
        nearest = np.minimum(nearest, np.square(rows - rows[chosen[-1]]).sum(axis=1))
        nearest[chosen[-1]] = -1.0
        chosen.append(int(nearest.argmax()))
    return chosen
