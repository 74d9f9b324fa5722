"""Integers as expressions over the arguments of a program, and the intervals that the expressions can take.

An expression stands for one integer, or for all elements of a tensor. A program's operations become expressions once
(``index_reader.py``); the interval of an expression is found again and again, for other intervals of the arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from mlir_sched.tasks.worker.integers.intervals import (
    EMPTY,
    NEGATED,
    Interval,
    compared,
    computed,
    intersection,
    is_empty,
    is_inside,
    narrowed,
    type_range,
    union,
)

STEPS = 4
"""Steps for which the interval of a loop's value is followed before it is taken for all values of its type. An index of
the largest element is settled after two; a sum is never."""
DEEPEST = 6
"""Most conditions, one inside another, that narrow what an expression can be: each doubles the work."""


class Expression:
    """One integer, or all elements of a tensor of integers; two expressions are equal only if they are the same."""


@dataclass(frozen=True, eq=False)
class Constant(Expression):
    """A value between known limits, whatever the arguments."""

    interval: Interval


@dataclass(frozen=True, eq=False)
class Argument(Expression):
    """An argument of the program, by its position among the values that a caller passes."""

    position: int
    bits: int


@dataclass(frozen=True, eq=False)
class Unknown(Expression):
    """A value that is not followed: any integer of its type. ``cause`` names what made it."""

    bits: int
    cause: str


@dataclass(frozen=True, eq=False)
class Element(Expression):
    """One element of a tensor: the same one wherever this expression is used."""

    tensor: Expression


@dataclass(frozen=True, eq=False)
class OneOf(Expression):
    """Any of several expressions."""

    choices: tuple[Expression, ...]


@dataclass(frozen=True, eq=False)
class Computed(Expression):
    """The result of an operation (:func:`~mlir_sched.tasks.worker.integers.intervals.computed`)."""

    name: str
    operands: tuple[Expression, ...]
    bits: int
    source_bits: int


@dataclass(frozen=True, eq=False)
class Comparison(Expression):
    """1 where a predicate holds, otherwise 0."""

    predicate: int
    first: Expression
    second: Expression
    bits: int


@dataclass(frozen=True, eq=False)
class Selected(Expression):
    """One of two values, as a condition says."""

    condition: Expression
    if_true: Expression
    if_false: Expression


@dataclass(frozen=True, eq=False)
class Parameter(Expression):
    """The value that a loop carries, in its body."""

    bits: int


@dataclass(frozen=True, eq=False)
class Carried(Expression):
    """The value that a loop carries, after any number of steps: first ``initial``, then what the body makes of it."""

    parameter: Parameter
    initial: Expression
    following: Expression


class Intervals:
    """The intervals of expressions, given those of the arguments.

    Args:
        arguments: Interval of every argument, by position; arguments that are not named can be anything.
    """

    def __init__(self, arguments: Mapping[int, Interval]) -> None:
        self._arguments = arguments
        self._parent: Intervals | None = None
        self._known: dict[Expression, Interval] = {}
        self._given: dict[Expression, Interval] = {}
        self._parameters: frozenset[Expression] = frozenset()
        self._depth = 0

    def of(self, expression: Expression) -> Interval:
        """Return the smallest and largest value of an expression."""
        if expression not in self._known:
            self._known[expression] = self._evaluated(expression)
        return self._known[expression]

    def _evaluated(self, expression: Expression) -> Interval:
        match expression:
            case Constant(interval):
                return interval
            case Argument(position, bits):
                return self._arguments.get(position, type_range(bits))
            case Unknown(bits) | Parameter(bits):
                return self._parent.of(expression) if self._parent else type_range(bits)
            case Element(tensor):
                return self._around().of(expression) if self._is_outside(tensor) else self.of(tensor)
            case OneOf(choices):
                return union([self.of(choice) for choice in choices])
            case Computed(name, operands, bits, source_bits):
                return computed(name, [self.of(operand) for operand in operands], bits, source_bits)
            case Comparison(predicate, first, second, bits):
                return compared(predicate, self.of(first), self.of(second), bits)
            case Selected():
                return self._selected(expression)
            case Carried():
                return self._carried(expression)
        raise TypeError(f"not an expression: {expression!r}")

    def _is_outside(self, tensor: Expression) -> bool:
        """Say whether a tensor is the same outside of the branch or loop that these intervals are for."""
        return self._parent is not None and not (self._parameters and _uses(tensor, self._parameters))

    def _around(self) -> Intervals:
        assert self._parent is not None
        return self._parent

    def _selected(self, chosen: Selected) -> Interval:
        branches = []
        for truth, branch in ((True, chosen.if_true), (False, chosen.if_false)):
            known = self._where(chosen.condition, truth)
            if not any(is_empty(interval) for interval in known.values()):
                branches.append(self._with(known).of(branch))
        return union(branches)

    def _where(self, condition: Expression, truth: bool) -> dict[Expression, Interval]:
        """Return what is known of expressions where a condition is true, or false; an empty interval if it never is."""
        itself = {condition: intersection(self.of(condition), (int(truth), int(truth)))}
        return _both(itself, self._behind(condition, truth))

    def _behind(self, condition: Expression, truth: bool) -> dict[Expression, Interval]:
        """Return what a condition that is true, or false, says of the expressions that it is computed from."""
        match condition:
            case Comparison(predicate, first, second):
                pair = narrowed(predicate if truth else NEGATED[predicate], self.of(first), self.of(second))
                return {first: pair[0], second: pair[1]}
            case Computed("arith.andi", (first, second), 1) if truth:
                return _both(self._where(first, truth), self._where(second, truth))
            case Computed("arith.ori", (first, second), 1) if not truth:
                return _both(self._where(first, truth), self._where(second, truth))
            case Computed("arith.xori", (first, Constant((1, 1))), 1):
                return self._where(first, not truth)
        return {}

    def _with(self, known: Mapping[Expression, Interval], parameters: frozenset[Expression] = frozenset()) -> Intervals:
        """Return the intervals where more is known of some expressions."""
        known = {each: interval for each, interval in known.items() if not isinstance(each, Constant)}
        if not known or (self._depth >= DEEPEST and not parameters):
            return self
        inner = Intervals(self._arguments)
        inner._parent, inner._depth = self, self._depth + 1
        inner._given = {**self._given, **known}
        inner._known = dict(inner._given)
        inner._parameters = self._parameters | parameters
        return inner

    def _carried(self, value: Carried) -> Interval:
        held = self.of(value.initial)
        for _ in range(STEPS):
            inner = self._with({value.parameter: held}, frozenset({value.parameter}))
            following = inner.of(value.following)
            if is_inside(following, held):
                return held
            held = union([held, following])
        return type_range(value.parameter.bits)


def parts(expression: Expression) -> tuple[Expression, ...]:
    """Return the expressions that an expression is computed from."""
    match expression:
        case Element(tensor):
            return (tensor,)
        case OneOf(several) | Computed(_, several):
            return several
        case Comparison(_, first, second):
            return first, second
        case Selected(condition, if_true, if_false):
            return condition, if_true, if_false
        case Carried(_, initial, following):
            return initial, following
    return ()


@lru_cache(maxsize=4096)
def leaves(expression: Expression) -> frozenset[Expression]:
    """Return the expressions without parts that an expression is computed from."""
    found, seen, waiting = set(), {expression}, [expression]
    while waiting:
        each = waiting.pop()
        new = [part for part in parts(each) if part not in seen]
        seen.update(new)
        waiting += new
        if not parts(each):
            found.add(each)
    return frozenset(found)


def _uses(expression: Expression, parameters: frozenset[Expression]) -> bool:
    return not parameters.isdisjoint(leaves(expression))


def _both(first: Mapping[Expression, Interval], second: Mapping[Expression, Interval]) -> dict[Expression, Interval]:
    shared = {each: intersection(first[each], second[each]) for each in first.keys() & second.keys()}
    return {**first, **second, **shared}


NOTHING = Constant(EMPTY)
"""What a tensor holds before anything is written: no element of it is read."""
