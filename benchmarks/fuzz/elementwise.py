"""Operations of random programs that compute element by element."""

from collections.abc import Sequence

import numpy as np

from benchmarks.fuzz.draft import NARROW, Array, Compute, Draft
from benchmarks.mlir_text import Value
from mlir_sched.runner.checks.rounding import MATH_WEIGHT

SUM_SCALE = 0.0019
"""What sums of products of bytes are scaled with: most of them end within a byte, some saturate."""
FLOAT_SCALE = 8.0
"""What floats are scaled with: a power of 2, so that only ``roundeven`` rounds."""
INTEGER_SCALE = 0.03125
"""What integers are scaled with."""


def elementwise(draft: Draft, value: Value) -> Value | None:
    """Apply a function of one number."""
    floats: list[tuple[list[str], Compute]] = [
        (["%r = arith.negf %x"], np.negative),
        (["%r = math.absf %x"], np.abs),
        (["%r = math.tanh %x"], np.tanh),
        (["%t = math.tanh %x", "%r = math.exp %t"], lambda x: np.exp(np.tanh(x))),
        (["%r = arith.mulf %x, %x"], np.square),
        (["%t = arith.constant 0.0", "%r = arith.maximumf %x, %t"], lambda x: np.maximum(x, 0)),
        (["%t = arith.constant 0.25", "%r = arith.mulf %x, %t"], lambda x: x * 0.25),
    ]
    integers: list[tuple[list[str], Compute]] = [
        (["%r = arith.muli %x, %x"], lambda x: x * x),
        (["%t = arith.constant 3", "%r = arith.addi %x, %t"], lambda x: x + x.dtype.type(3)),
        (["%t = arith.constant 0", "%r = arith.maxsi %x, %t"], lambda x: np.maximum(x, 0)),
        (["%t = arith.constant 2", "%r = arith.shrsi %x, %t"], lambda x: x >> 2),
    ]
    lines, compute = draft.any_of(floats if value.is_float else integers)
    return _generic(draft, [value], value.kind, lines, compute)


def with_another(draft: Draft, value: Value) -> Value | None:
    """Combine a value with a new argument of its shape, or with a row of it."""
    other = draft.argument(*(value.shape if draft.rng.random() < 0.5 else value.shape[-1:]), kind=value.kind)
    return combined(draft, value, other)


def combined(draft: Draft, value: Value, other: Value) -> Value:
    """Add, subtract, multiply or take the larger of two values; the second may be a row of the first."""
    floats = [("arith.addf", np.add), ("arith.subf", np.subtract), ("arith.mulf", np.multiply)]
    integers = [("arith.addi", np.add), ("arith.subi", np.subtract), ("arith.muli", np.multiply)]
    largest = ("arith.maximumf", np.maximum) if value.is_float else ("arith.maxsi", np.maximum)
    name, compute = draft.any_of([*(floats if value.is_float else integers), largest])
    return _generic(draft, [value, other], value.kind, [f"%r = {name} %x, %y"], compute)


def converted(draft: Draft, value: Value) -> Value | None:
    """Convert to another type."""
    wider = {
        "f16": "f32",
        "bf16": "f32",
        "f32": "f64",
        "i8": "i32",
        "i16": "i32",
        "i4": "i8",
        "f8E4M3FN": "f32",
        "f8E5M2": "f32",
    }
    narrower = {"f64": "f32", "f32": draft.any_of(["f16", "bf16"]), "i32": draft.any_of(["i16", "i8"])}
    if value.kind in wider and (value.kind in NARROW or draft.rng.random() < 0.5):
        kind, name = wider[value.kind], "arith.extf" if value.is_float else "arith.extsi"
    elif value.kind in narrower:
        kind, name = narrower[value.kind], "arith.truncf" if value.is_float else "arith.trunci"
    else:
        return None
    return _generic(draft, [value], kind, [f"%r = {name} %x : {value.kind} to {kind}"], lambda x: x)


def requantised(draft: Draft, value: Value) -> Value | None:
    """Scale sums to bytes, as quantised networks do; each of the two roundings is defined, so the bytes are exact."""
    if value.kind != "i32":
        return None
    lines = ["%f = arith.sitofp %x : i32 to f32", *_to_bytes("%f", SUM_SCALE, "f32")]
    return _generic(draft, [value], "i8", lines, lambda x: _bytes_of(x.astype(np.float32) * np.float32(SUM_SCALE)))


def quantised(draft: Draft, value: Value) -> Value | None:
    """Scale floats to bytes."""
    if not value.is_float:
        return None
    return _generic(
        draft, [value], "i8", _to_bytes("%x", FLOAT_SCALE, value.kind), lambda x: _bytes_of(x * FLOAT_SCALE)
    )


def dequantised(draft: Draft, value: Value) -> Value | None:
    """Scale integers to floats."""
    if value.is_float:
        return None
    lines = [
        f"%f = arith.sitofp %x : {value.kind} to f32",
        f"%s = arith.constant {INTEGER_SCALE} : f32",
        "%r = arith.mulf %f, %s : f32",
    ]
    return _generic(draft, [value], "f32", lines, lambda x: x.astype(np.float32) * np.float32(INTEGER_SCALE))


def _to_bytes(name: str, scale: float, kind: str) -> list[str]:
    """Return the body that scales a float, rounds it to a whole number and keeps that within a byte."""
    return [
        f"%s = arith.constant {scale} : {kind}",
        f"%m = arith.mulf {name}, %s : {kind}",
        f"%n = math.roundeven %m : {kind}",
        f"%low = arith.constant -128.0 : {kind}",
        f"%high = arith.constant 127.0 : {kind}",
        f"%a = arith.maximumf %n, %low : {kind}",
        f"%b = arith.minimumf %a, %high : {kind}",
        f"%r = arith.fptosi %b : {kind} to i8",
    ]


def _bytes_of(scaled: Array) -> Array:
    return np.clip(np.rint(scaled), -128, 127)


def _generic(draft: Draft, read: Sequence[Value], kind: str, lines: Sequence[str], compute: Compute) -> Value:
    """Return a value computed element by element; a shorter value is a row of the first."""
    first = read[0]
    empty = draft.empty(first.shape, kind)
    roundings = len(lines) + MATH_WEIGHT * sum("math.tanh" in line or "math.exp" in line for line in lines)
    made = draft.made(first.shape, kind, compute, *read, roundings=roundings)
    dims = [f"d{place}" for place in range(len(first.shape))]
    maps = [dims[len(dims) - len(value.shape) :] for value in (*read, made)]
    body = [line if " : " in line else f"{line} : {first.kind}" for line in lines]
    draft.generic(made, empty, read, dims, maps, len(dims), body)
    return made
