"""The element types of tensors that can be run and verified, as numpy types."""

from __future__ import annotations

from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from mlir_sched.errors import UserError
from mlir_sched.payload import TensorSpec

Array: TypeAlias = NDArray[Any]

DTYPES: dict[str, np.dtype[Any]] = {
    "f64": np.dtype(np.float64),
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "i64": np.dtype(np.int64),
    "i32": np.dtype(np.int32),
    "i16": np.dtype(np.int16),
    "i8": np.dtype(np.int8),
    "i1": np.dtype(np.bool_),
}
"""numpy type of each MLIR element type that can be run and verified."""


def dtype_of(spec: TensorSpec) -> np.dtype[Any]:
    """Return the numpy type of the elements.

    Raises:
        UserError: The element type is not one that can be run and verified.
    """
    if spec.element_type not in DTYPES:
        raise UserError(f"cannot make or compare values of type {spec.element_type}; known types: {', '.join(DTYPES)}")
    return DTYPES[spec.element_type]
