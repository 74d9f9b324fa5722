"""The element types of tensors that can be run and verified, as numpy types."""

from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from mlir_sched.errors import UserError
from mlir_sched.payload import ELEMENT_BITS, TensorSpec

Array: TypeAlias = NDArray[Any]

DTYPES: dict[str, np.dtype[Any]] = {
    "f64": np.dtype(np.float64),
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "f8E4M3FNUZ": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "f8E5M2FNUZ": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "complex<f32>": np.dtype(np.complex64),
    "i64": np.dtype(np.int64),
    "i32": np.dtype(np.int32),
    "i16": np.dtype(np.int16),
    "i8": np.dtype(np.int8),
    "i4": np.dtype(ml_dtypes.int4),
    "i2": np.dtype(ml_dtypes.int2),
    "i1": np.dtype(np.bool_),
    "ui64": np.dtype(np.uint64),
    "ui32": np.dtype(np.uint32),
    "ui16": np.dtype(np.uint16),
    "ui8": np.dtype(np.uint8),
}
"""numpy type of each MLIR element type that can be run and verified. Elements of i4 and i2 have a byte each in arrays,
and are packed in memory (``packing.py``). IREE reads signless integers as either sign."""

_INTEGERS = frozenset(dtype for name, dtype in DTYPES.items() if name.lstrip("u")[0] == "i")


def dtype_of(spec: TensorSpec) -> np.dtype[Any]:
    """Return the numpy type of the elements.

    Raises:
        UserError: The element type is not one that can be run and verified.
    """
    if spec.element_type not in DTYPES:
        raise UserError(f"cannot make or compare values of type {spec.element_type}; known types: {', '.join(DTYPES)}")
    return DTYPES[spec.element_type]


def holds_integers(array: Array) -> bool:
    """Say whether the elements of an array are integers, which are compared for equality; booleans are."""
    return array.dtype in _INTEGERS


def is_integer(spec: TensorSpec) -> bool:
    """Say whether the elements of a tensor are integers; booleans are."""
    return dtype_of(spec) in _INTEGERS


def integer_limits(spec: TensorSpec) -> tuple[int, int]:
    """Return the lowest and the highest value of an integer type; signless types are taken as signed."""
    bits = ELEMENT_BITS[spec.element_type]
    return (0, 2**bits - 1) if spec.element_type[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def real_numbers(array: Array) -> Array:
    """Return complex numbers as pairs of real numbers, in one more dimension; other numbers as they are."""
    if array.dtype.kind != "c":
        return array
    pairs: Array = np.ascontiguousarray(array).view(f"f{array.dtype.itemsize // 2}")
    return pairs.reshape(*array.shape, 2)
