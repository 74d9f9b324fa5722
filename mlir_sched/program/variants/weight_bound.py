"""The bound of what a program needs in memory: bytes of weights that its calls read, beside those of the default."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mlir_sched.tasks import Model
from mlir_sched.text import mebibytes

TOO_LARGE = "too much memory: "
"""Begin of why a program is left out."""
TABLES_BYTES = 2**20
"""Bytes that no bound forbids beyond the default's: far more than the tables of rewrites, such as Winograd's matrices
and places of channels, which have some KiB."""


@dataclass(frozen=True)
class WeightBound:
    """A bound of a program's weights.

    Attributes:
        most_bytes: Most bytes of weights that the calls of a program may read.
    """

    most_bytes: float = math.inf

    @staticmethod
    def of(ratio: float | None, default: Model) -> WeightBound:
        """Return the bound as a multiple of what calls of the default read, at least 1; None is no bound."""
        own = default.weight_bytes
        return NO_BOUND if ratio is None else WeightBound(max(ratio * own, own + TABLES_BYTES))

    def why_above(self, model: Model, further_bytes: int = 0) -> str:
        """Return why a program is left out; empty where its weights are within the bound.

        Args:
            further_bytes: Bytes of weights that it has beyond those of the model.
        """
        size = model.weight_bytes + further_bytes
        if size <= self.most_bytes:
            return ""
        return f"{TOO_LARGE}its calls read {mebibytes(size)} of weights, of at most {mebibytes(int(self.most_bytes))}"


NO_BOUND = WeightBound()
"""The bound of programs whose weights may be of any size."""
