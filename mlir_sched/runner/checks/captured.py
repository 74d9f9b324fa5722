"""Files with the values of one dispatch's inputs, as a run of the whole program passes them to the dispatch."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mlir_sched.payload import TensorSpec
from mlir_sched.tensors.element_types import Array
from mlir_sched.tensors.packing import from_words, word_of, words_shape


@dataclass(frozen=True)
class Wanted:
    """The tensors of a dispatch to record.

    Attributes:
        inputs: The tensors that it takes, in order.
        file: The file that their values are written to.
    """

    inputs: tuple[TensorSpec, ...]
    file: str


def write_values(path: Path, tensors: Sequence[Array]) -> None:
    """Write the bytes of tensors, in their order."""
    with path.open("wb") as file:
        np.savez(file, *tensors)


def read_values(path: Path, specs: Sequence[TensorSpec]) -> tuple[Array, ...]:
    """Return the tensors of a file in their shapes and element types.

    Raises:
        OSError, ValueError: The file is missing, or holds other tensors.
    """
    with np.load(path, allow_pickle=False) as file:
        found = [file[f"arr_{position}"] for position in range(len(specs))]
    words = [array.view(word_of(spec)).reshape(words_shape(spec)) for array, spec in zip(found, specs, strict=True)]
    return tuple(from_words(each, spec) for each, spec in zip(words, specs, strict=True))
