"""Operations of random programs that reduce a dimension."""

from __future__ import annotations

from math import sqrt

import numpy as np

from benchmarks.fuzz.draft import Array, Draft, Value
from mlir_sched.runner.checks.rounding import MATH_WEIGHT


def reduced(draft: Draft, value: Value) -> Value | None:
    """Sum, or take the largest, along one dimension."""
    if len(value.shape) < 2:
        return None
    axis = int(draft.rng.integers(len(value.shape)))
    shape = tuple(size for position, size in enumerate(value.shape) if position != axis)
    adds = draft.rng.random() < 0.6
    least = {"i8": -128, "i16": -32768, "i32": -(2**31)}.get(value.kind, -60000.0)
    start = draft.filled(shape, value.kind, 0.0 if adds else least)
    float_name, integer_name = ("addf", "addi") if adds else ("maximumf", "maxsi")
    made = draft.made(
        shape, value.kind,
        (lambda x: x.sum(axis, dtype=x.dtype)) if adds else (lambda x: np.maximum(x.max(axis), least)), value,
        roundings=sqrt(value.shape[axis]) + 1,
    )  # fmt: skip
    draft.line(
        f"%{made.name} = linalg.reduce {{ arith.{float_name if value.is_float else integer_name} }} "
        f"ins(%{value.name} : {value.type}) outs(%{start.name} : {start.type}) dimensions = [{axis}]"
    )
    return made


def softmax(draft: Draft, value: Value) -> Value | None:
    """Take the softmax along one dimension."""
    if not value.is_float:
        return None
    axis, empty = int(draft.rng.integers(len(value.shape))), draft.empty(value.shape, value.kind)

    def compute(x: Array) -> Array:
        raised = np.exp(x - x.max(axis, keepdims=True))
        return np.asarray(raised / raised.sum(axis, keepdims=True))

    made = draft.made(value.shape, value.kind, compute, value, roundings=sqrt(value.shape[axis]) + MATH_WEIGHT + 2)
    draft.line(
        f"%{made.name} = linalg.softmax dimension({axis}) ins(%{value.name} : {value.type}) "
        f"outs(%{empty.name} : {empty.type}) -> {made.type}"
    )
    return made
