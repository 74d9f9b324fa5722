"""The rank accuracy of predicted scores; higher scores and higher throughputs are better."""

import numpy as np
from numpy.typing import NDArray

from mlir_sched.models.cost_model import FloatArray


def pair_accuracy(scores: FloatArray, throughput: FloatArray) -> float:
    """Return the share of pairs that the scores rank correctly, 0..1; 0.5 when all throughputs are equal.

    ``(concordant + tied scores / 2) / pairs with different throughput``

    Args:
        scores: Predictions, ``[n_rows]``, of candidates of one task; rows of different tasks cannot be compared.
        throughput: Measured throughputs, ``[n_rows]``.

    Source: the pairwise comparison accuracy of Ansor (Zheng et al., OSDI 2020, section 7.4).
    """
    signs_s, signs_t = _pair_signs(scores), _pair_signs(throughput)
    pairs = float(np.abs(signs_t).sum())
    return 0.5 + 0.5 * float((signs_s * signs_t).sum()) / pairs if pairs else 0.5


def _pair_signs(values: FloatArray) -> NDArray[np.int64]:
    """Return the sign of the difference of every pair of rows, ``[n_rows * (n_rows - 1) / 2]``."""
    first, second = np.triu_indices(len(values), 1)
    return np.sign(values[first] - values[second]).astype(np.int64)
