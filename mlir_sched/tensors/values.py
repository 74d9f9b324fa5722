"""Values that a user gives for the tensors of a program: its inputs, and what its outputs have to be."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class TensorValue:
    """The elements of one tensor; values with equal elements, shape and type are equal.

    Attributes:
        digest: Digest of type, shape and elements.
        source: Where they come from, for messages.
        untyped: Whether it is a number without a type, for a scalar of any type.
    """

    digest: str
    array: NDArray[Any] = field(compare=False, repr=False)
    source: str = field(default="", compare=False)
    untyped: bool = False

    @staticmethod
    def of(array: NDArray[Any], source: str, *, untyped: bool = False) -> TensorValue:
        """Return the value of an array, which is copied and cannot be written any more."""
        own = np.array(array, order="C")
        own.setflags(write=False)
        text = f"{own.dtype.name} {own.shape} ".encode()
        return TensorValue(hashlib.sha256(text + own.tobytes()).hexdigest()[:16], own, source, untyped)


@dataclass(frozen=True)
class FunctionValues:
    """The values given for one public function.

    Attributes:
        function: Its name; empty for the only function of a program.
        inputs: One value per input.
        reference: What each output has to be for these inputs; empty where the untuned code says that.
    """

    function: str
    inputs: tuple[TensorValue, ...]
    reference: tuple[TensorValue, ...] = ()

    def digests(self) -> dict[str, list[str]]:
        """Return the digests of inputs and reference."""
        return {"inputs": [v.digest for v in self.inputs], "reference": [v.digest for v in self.reference]}


def digests_of(values: Sequence[FunctionValues]) -> dict[str, dict[str, list[str]]]:
    """Return the digests of all values by function."""
    return {each.function: each.digests() for each in values}
