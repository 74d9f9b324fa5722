"""Elements as they lie in memory: types narrower than a byte are packed, the first element in the lowest bits.

Source: ``iree_hal_buffer_view_t`` and the packed storage of IREE's ``EmulateNarrowType`` pass.
"""

from typing import Any

import numpy as np

from mlir_sched.payload import ELEMENT_BITS, TensorSpec
from mlir_sched.tensors.element_types import Array, dtype_of


def word_of(spec: TensorSpec) -> np.dtype[Any]:
    """Return the unsigned type of the words that a tensor's memory consists of: of an element's size, or bytes."""
    return np.dtype(f"u{dtype_of(spec).itemsize}")


def words_shape(spec: TensorSpec) -> tuple[int, ...]:
    """Return the shape of a tensor's memory in words; packed elements lie in one dimension."""
    return spec.shape if _per_byte(spec) == 1 else (spec.bytes,)


def to_words(array: Array, spec: TensorSpec) -> Array:
    """Return the memory of elements in words; a scalar gives the word whose repetition repeats the element.

    Args:
        array: Elements, or unsigned integers of their size.
        spec: Their type; the shape may be another.
    """
    words: Array = array.view(word_of(spec))
    per_byte, bits = _per_byte(spec), ELEMENT_BITS[spec.element_type]
    if per_byte == 1:
        return words
    rows = np.broadcast_to(words, per_byte)[None] if words.ndim == 0 else _in_rows(words.reshape(-1), per_byte)
    packed: Array = np.bitwise_or.reduce(rows << (bits * np.arange(per_byte, dtype=np.uint8)), axis=1)
    return packed[0] if words.ndim == 0 else packed


def from_words(words: Array, spec: TensorSpec) -> Array:
    """Return the elements that lie in words of memory; packed ones are copied."""
    per_byte, bits = _per_byte(spec), ELEMENT_BITS[spec.element_type]
    if per_byte == 1:
        return words.view(dtype_of(spec))
    shifts = bits * np.arange(per_byte, dtype=np.uint8)
    elements: Array = (words.reshape(-1, 1) >> shifts) & np.uint8(2**bits - 1)
    return elements.reshape(-1)[: spec.elements].reshape(spec.shape).view(dtype_of(spec))


def _per_byte(spec: TensorSpec) -> int:
    return max(1, 8 // ELEMENT_BITS[spec.element_type])


def _in_rows(words: Array, per_byte: int) -> Array:
    """Return single elements in rows of those that share a byte, the last one filled up with zeros."""
    rows = np.zeros((-(-words.size // per_byte), per_byte), np.uint8)
    rows.reshape(-1)[: words.size] = words
    return rows
