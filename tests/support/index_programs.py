"""Random computations of a position in a table, as MLIR text and as functions of numpy arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st

Ints: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
Computation: TypeAlias = Callable[[Ints, Ints], Ints]
WIDTH = 16


def wrapped(values: Ints, bits: int = WIDTH) -> Ints:
    """Return integers in two's complement."""
    half = 1 << (bits - 1)
    return (values + half) % (1 << bits) - half


def unsigned(values: Ints, bits: int = WIDTH) -> Ints:
    return values % (1 << bits)


def truncated_quotient(a: Ints, b: Ints) -> Ints:
    return np.asarray(np.sign(a) * np.sign(b) * (abs(a) // abs(b)))


PREDICATES: dict[str, Callable[[Ints, Ints], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "slt": np.less,
    "sle": np.less_equal,
    "sgt": np.greater,
    "sge": np.greater_equal,
    "ult": lambda a, b: unsigned(a) < unsigned(b),
    "uge": lambda a, b: unsigned(a) >= unsigned(b),
}
BINARY: dict[str, Computation] = {
    "arith.addi": lambda a, b: wrapped(a + b),
    "arith.subi": lambda a, b: wrapped(a - b),
    "arith.muli": lambda a, b: wrapped(a * b),
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.minsi": np.minimum,
    "arith.maxsi": np.maximum,
    "arith.minui": lambda a, b: wrapped(np.minimum(unsigned(a), unsigned(b))),
    "arith.maxui": lambda a, b: wrapped(np.maximum(unsigned(a), unsigned(b))),
}
BY_POSITIVE: dict[str, Computation] = {
    "arith.divsi": truncated_quotient,
    "arith.remsi": lambda a, b: a - b * truncated_quotient(a, b),
    "arith.divui": lambda a, b: wrapped(unsigned(a) // b),
    "arith.remui": lambda a, b: unsigned(a) % b,
    "arith.floordivsi": lambda a, b: a // b,
    "arith.ceildivsi": lambda a, b: -(-a // b),
}
BY_DISTANCE: dict[str, Computation] = {
    "arith.shli": lambda a, b: wrapped(a << b),
    "arith.shrsi": lambda a, b: a >> b,
    "arith.shrui": lambda a, b: wrapped(unsigned(a) >> b),
}
CASTS: dict[str, Computation] = {
    "arith.extsi": lambda a, _: wrapped(a, 8),
    "arith.extui": lambda a, _: unsigned(a, 8),
}


@dataclass(frozen=True)
class Index:
    """A computed integer: the MLIR of the operations that make ``name``, and its values for those of two arguments."""

    lines: tuple[str, ...]
    name: str
    values: Computation


@st.composite
def indices(draw: st.DrawFn, depth: int = 3) -> Index:
    """Draw an integer that is computed from the arguments %a and %b by at most some operations in a row."""
    count = [0]

    def named(lines: tuple[str, ...], text: str, values: Computation) -> Index:
        count[0] += 1
        return Index((*lines, f"%v{count[0]} = {text}"), f"%v{count[0]}", values)

    def constant(lowest: int, highest: int) -> Index:
        number = draw(st.integers(lowest, highest))
        return named((), f"arith.constant {number} : i{WIDTH}", lambda a, _: np.full_like(a, number))

    def binary(rules: dict[str, Computation], first: Index, second: Index) -> Index:
        op = draw(st.sampled_from(sorted(rules)))
        text = f"{op} {first.name}, {second.name} : i{WIDTH}"
        lines = first.lines + second.lines
        return named(lines, text, lambda a, b: rules[op](first.values(a, b), second.values(a, b)))

    def selected(first: Index, second: Index) -> Index:
        limit, predicate = constant(-60, 60), draw(st.sampled_from(sorted(PREDICATES)))
        known = draw(st.sampled_from((first, second)))
        condition = named(
            first.lines + second.lines + limit.lines,
            f"arith.cmpi {predicate}, {known.name}, {limit.name} : i{WIDTH}",
            lambda a, b: PREDICATES[predicate](known.values(a, b), limit.values(a, b)),
        )
        text = f"arith.select {condition.name}, {first.name}, {second.name} : i{WIDTH}"
        return named(
            condition.lines,
            text,
            lambda a, b: np.where(condition.values(a, b), first.values(a, b), second.values(a, b)),
        )

    def cast(inner: Index) -> Index:
        op = draw(st.sampled_from(sorted(CASTS)))
        narrow = named(inner.lines, f"arith.trunci {inner.name} : i{WIDTH} to i8", inner.values)
        text = f"{op} {narrow.name} : i8 to i{WIDTH}"
        return named(narrow.lines, text, lambda a, b: CASTS[op](inner.values(a, b), b))

    def drawn(left: int) -> Index:
        kind = draw(st.sampled_from(("a", "b", "binary", "divided", "shifted", "selected", "cast"))) if left else "a"
        if kind in ("a", "b"):
            return Index((), f"%{kind}", (lambda a, _: a) if kind == "a" else (lambda _, b: b))
        if kind == "cast":
            return cast(drawn(left - 1))
        first = drawn(left - 1)
        if kind == "divided":
            return binary(BY_POSITIVE, first, constant(1, 40))
        if kind == "shifted":
            return binary(BY_DISTANCE, first, constant(0, 5))
        second = drawn(left - 1) if draw(st.booleans()) else constant(-60, 60)
        return selected(first, second) if kind == "selected" else binary(BINARY, first, second)

    return drawn(depth)
