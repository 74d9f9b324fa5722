"""The integers that a program can take: integers used as indices stay inside the tensors that they index.

A language model takes tokens and reads a row of a table for each; a token beyond the table would read memory that does
not belong to the table. Where arguments decide a position in a tensor, the ranges of the arguments are such that the
position stays inside, by interval arithmetic on the way from the arguments to the tensor. A divisor stays above 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from iree.compiler import ir

from mlir_sched.compiler.operations import walk
from mlir_sched.tasks.worker.call_counts import tensor_operands, workload_size
from mlir_sched.tasks.worker.integers.index_expressions import Computed, Constant, Expression, Unknown, leaves
from mlir_sched.tasks.worker.integers.index_reader import Frame, IndexReader, bits_of
from mlir_sched.tasks.worker.integers.intervals import INDEX_BITS, Interval, type_range
from mlir_sched.tasks.worker.integers.range_solver import Limit, solve
from mlir_sched.tasks.worker.integers.table_accesses import HOW_OFTEN, Access, accesses_of, holds_integers

Range: TypeAlias = Interval
"""Smallest and largest integer, both included."""

CAUTIOUS = 1
"""Numbers above the first value that works which are tried of an argument whose use is not understood: every table has
a row 0, and nearly every table a row 1. Of an argument that decides how often a loop runs the first is 1, with which
most loops run, and end soon."""
USUAL = 1000
"""Largest number, and negative of the smallest, that an argument has where no table limits it; bytes have less."""


@dataclass(frozen=True)
class Integers:
    """An argument of a public function.

    Attributes:
        bits: Width of its integers; None for an argument that holds none, or only ``i1``.
        single: Whether it is one number.
    """

    value: Any
    bits: int | None
    single: bool = False


@dataclass(frozen=True)
class Place:
    """A limit, with what is needed to tell why it cannot be kept."""

    access: Access
    frame: Frame
    limit: Limit


class IntegerRanges:
    """Finds the integers that the public functions of one program can take."""

    def __init__(self, module: Any) -> None:
        self._reader = IndexReader(module)
        self._accesses: dict[Any, tuple[Access, ...]] = {}

    def of(self, function: Any, arguments: Sequence[Integers]) -> tuple[tuple[Range | None, ...], tuple[str, ...]]:
        """Return the range of each argument of a public function, and what could not be found out.

        Args:
            arguments: Its arguments, without those that IREE passes for itself.

        Returns:
            The ranges, None for an argument for which any integer will do or that holds none; and a sentence for each
            argument whose integers cannot be followed to where they are used, of which only few are tried.
        """
        nothing = (None,) * len(arguments)
        if all(argument.bits is None for argument in arguments):
            return nothing, ()
        reader = self._reader
        frames = reader.frames(function, [(each.value, each.bits or INDEX_BITS) for each in arguments])
        places = [place for frame in frames for place in self._places(frame, reader)]
        usual = {position: _usual(each.bits or INDEX_BITS) for position, each in enumerate(arguments)}
        kept, broken = solve([place.limit for place in places], usual)
        found: dict[int, Range] = {**kept}
        notes = []
        for place in (place for place in places if place.limit in broken):
            start = int(place.access.what == HOW_OFTEN)
            for position in sorted(_behind(place, reader) | _counts_behind(place, reader, arguments)):
                if arguments[position].bits is not None:
                    low, high = found.get(position, (start, start + CAUTIOUS))
                    first = max(low, min(high, start))
                    found[position] = (first, min(high, first + CAUTIOUS))
                    notes.append(_note(position, found[position], place))
        ranges = [None if found.get(p) in (None, usual[p]) else found[p] for p in range(len(arguments))]
        return tuple(ranges), tuple({note.partition(":")[0]: note for note in reversed(notes)}.values())

    def of_inputs(self, dispatch: Any) -> tuple[Range | None, ...]:
        """Return the range of each tensor that a ``flow.dispatch`` takes, whatever its caller passes, as :meth:`of`."""
        tensors = [_integers(value) for value in tensor_operands(dispatch)]
        callees = self._reader.callees(dispatch)
        if not callees:
            return (None,) * len(tensors)
        inner = list(callees[0].regions[0].blocks[0].arguments)
        passed = list(dispatch.operands)[workload_size(dispatch) :]
        taken = [inner[position] for position, value in enumerate(passed) if isinstance(value.type, ir.ShapedType)]
        ranges, _ = self.of(callees[0], [replace(t, value=v) for t, v in zip(tensors, taken, strict=True)])
        return ranges

    def _places(self, frame: Frame, reader: IndexReader) -> list[Place]:
        """Return the limits inside of a call that do not hold whatever the arguments are."""
        if frame.function not in self._accesses:
            self._accesses[frame.function] = tuple(a for op in walk(frame.function) for a in accesses_of(op))
        places = []
        for access in self._accesses[frame.function]:
            index = _index(access, frame, reader)
            if any(not isinstance(leaf, Constant) for leaf in leaves(index)):
                places.append(Place(access, frame, Limit(index, access.allowed)))
        return places


def _index(access: Access, frame: Frame, reader: IndexReader) -> Expression:
    index = reader.read(access.value, frame)
    if access.behind is None:
        return index
    return Computed("arith.addi", (index, reader.read(access.behind, frame)), INDEX_BITS, INDEX_BITS)


def _counts_behind(place: Place, reader: IndexReader, arguments: Sequence[Integers]) -> set[int]:
    """Return the single numbers among the arguments that are compared to decide how often a loop runs.

    Tensors with more elements are data, of which the loop's end may depend on one.
    """
    if place.access.what != HOW_OFTEN:
        return set()
    return {p for p in _behind(place, reader, compared=True) if arguments[p].single}


def _behind(place: Place, reader: IndexReader, *, compared: bool = False) -> set[int]:
    """Return the arguments that an integer is computed from, also through what cannot be read as an expression.

    Args:
        compared: Whether what is compared counts, too.
    """
    waiting = [(place.access.value, place.frame)]
    if place.access.behind is not None:
        waiting.append((place.access.behind, place.frame))
    seen, found = set(waiting), set()
    while waiting:
        value, frame = waiting.pop()
        argument = reader.argument(value, frame)
        if argument is not None:
            found.add(argument.position)
            continue
        new = [source for source in reader.sources(value, frame, compared=compared) if source not in seen]
        seen.update(new)
        waiting += new
    return found


def _note(position: int, tried: Range, place: Place) -> str:
    causes = sorted({leaf.cause for leaf in leaves(place.limit.index) if isinstance(leaf, Unknown)})
    way = f", which {', '.join(causes[:2])} hides" if causes else ""
    return (
        f"argument {position}: only {tried[0]} to {tried[1]} are tried, as its numbers decide {place.access.what}{way}"
    )


def _integers(tensor: Any) -> Integers:
    return Integers(tensor, bits_of(tensor.type) if holds_integers(tensor.type) else None)


def _usual(bits: int) -> Range:
    low, high = type_range(bits)
    return max(low, -USUAL), min(high, USUAL)
