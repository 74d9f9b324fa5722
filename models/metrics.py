"""How well predicted scores rank candidates: higher is better in scores and in throughputs alike.

Ties count as neither right nor wrong. All functions take ``scores`` and ``throughput``, both ``[n_rows]``, of one
task; rows of different tasks do not compare.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mlir_sched.models.cost_model import FloatArray


def spearman(scores: FloatArray, throughput: FloatArray) -> float:
    """Return Spearman's rank correlation in -1..1; 0 when one side is constant.

    ``rho = cov(rank(s), rank(t)) / (std(rank(s)) * std(rank(t)))``, tied values share their mean rank.

    Source: Spearman, The Proof and Measurement of Association between Two Things, 1904.
    """
    first, second = _centred_ranks(scores), _centred_ranks(throughput)
    norm = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / norm if norm else 0.0


def kendall(scores: FloatArray, throughput: FloatArray) -> float:
    """Return Kendall's tau-b in -1..1; 0 when one side is constant.

    ``tau_b = (concordant - discordant) / sqrt(pairs untied in s * pairs untied in t)``

    Source: Kendall, The Treatment of Ties in Ranking Problems, 1945.
    """
    signs_s, signs_t = _pair_signs(scores), _pair_signs(throughput)
    norm = float(np.sqrt(np.abs(signs_s).sum() * np.abs(signs_t).sum()))
    return float((signs_s * signs_t).sum()) / norm if norm else 0.0


def pair_accuracy(scores: FloatArray, throughput: FloatArray) -> float:
    """Return the share of pairs ranked right, 0..1, a tied score counting half; 0.5 when no pair differs.

    ``(concordant + tied scores / 2) / pairs with different throughput``

    Source: the pairwise comparison accuracy of Ansor (Zheng et al., OSDI 2020, section 7.4).
    """
    signs_s, signs_t = _pair_signs(scores), _pair_signs(throughput)
    pairs = float(np.abs(signs_t).sum())
    return 0.5 + 0.5 * float((signs_s * signs_t).sum()) / pairs if pairs else 0.5


def top_recall(scores: FloatArray, throughput: FloatArray, k: int) -> float:
    """Return the share of the ``k`` best candidates that are among the ``k`` best scored, 0..1; 1 for no rows.

    Source: recall@k of top k, Ansor (Zheng et al., OSDI 2020, section 7.4).
    """
    k = min(k, len(scores))
    if k < 1:
        return 1.0
    best, picked = (np.argsort(-values, kind="stable")[:k] for values in (throughput, scores))
    return float(np.isin(picked, best).mean())


def average_peak(scores: FloatArray, throughput: FloatArray, n: int) -> float:
    """Return how near the best is reached on average while measuring the ``n`` best scored, in score order, 0..1.

    ``a-peak@n = mean over i = 1..n of max(t[order[:i]]) / max(t)``; 0 when every candidate failed.

    Source: MetaSchedule's average_peak_score (TVM ``xgb_model.py``).
    """
    peak = float(throughput.max()) if len(throughput) else 0.0
    if peak <= 0.0 or n < 1:
        return 0.0
    order = np.argsort(-scores, kind="stable")[:n]
    return float(np.maximum.accumulate(throughput[order]).mean()) / peak


def _pair_signs(values: FloatArray) -> NDArray[np.int64]:
    """Return the sign of the difference of every pair of rows, ``[n_rows * (n_rows - 1) / 2]``."""
    first, second = np.triu_indices(len(values), 1)
    return np.sign(values[first] - values[second]).astype(np.int64)


def _centred_ranks(values: FloatArray) -> NDArray[np.float64]:
    """Return the ranks less their mean, ``[n_rows]``; tied values share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts).astype(np.float64)
    ranks = (last - (counts - 1) / 2.0)[inverse]
    return np.asarray(ranks - ranks.mean() if len(ranks) else ranks, dtype=np.float64)
