"""Element types: numpy types and sizes."""

from __future__ import annotations

from mlir_sched.payload import ELEMENT_BYTES
from mlir_sched.tensors.element_types import DTYPES


def test_numpy_types_have_the_sizes_that_payloads_count_with() -> None:
    assert {name: dtype.itemsize for name, dtype in DTYPES.items()} == {name: ELEMENT_BYTES[name] for name in DTYPES}
