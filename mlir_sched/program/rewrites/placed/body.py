"""Bodies of ``linalg.generic``: what they read where, and how they make elements.

PyTorch's exporter writes ops that index an image by tensors with one tensor of indices per dim of the image; those of
batch and channel count up. An index below zero counts from the end.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import captures_constants_alone, constant_of, producer, source_of, walk
from mlir_sched.program.rewrites.constant_values import scalar_constant
from mlir_sched.program.rewrites.linalg_ops import (
    COLLAPSE,
    EXPAND,
    GENERIC,
    copied,
    dim_of,
    dims_map,
    generic,
    is_static,
    loops_of,
    maps_of,
)

Places = Sequence[int | None]
"""The loops that the dims of a value are read at; None for zeros."""
Other = Callable[[Any, Callable[[Any], Any]], Any]
"""Returns a value in place of another one, given what makes those that this is computed from, or None."""
INDEX, EXTRACT = "linalg.index", "tensor.extract"
LESS = (2, 6)
"""``slt`` and ``ult`` of ``arith.cmpi``."""


@dataclass(frozen=True)
class Body:
    """The body of an op.

    Attributes:
        op: A ``linalg.generic``; or another op, which reads its operands alone.
    """

    op: Any

    @property
    def arguments(self) -> list[Any]:
        """The elements of operands that the body gets."""
        return list(self.op.regions[0].blocks[0].arguments)

    @property
    def elements(self) -> list[Any]:
        """The values that are elements of the results."""
        return list(list(self.op.regions[0].blocks[0])[-1].operands)

    @cached_property
    def reads(self) -> list[Any]:
        """The ops that read elements of tensors."""
        return [op for op in walk(self.op) if op.name == EXTRACT]

    @property
    def inputs(self) -> list[Any]:
        """The operands, then the tensor of every read."""
        return [*self.op.operands, *(read.operands[0] for read in self.reads)]

    @property
    def iterators(self) -> list[str]:
        """The kinds of the loops."""
        return [str(kind).split("<")[1][:-1] for kind in self.op.attributes["iterator_types"]]

    @cached_property
    def places(self) -> list[Places]:
        """The loops that the dims of every operand are read at; None for zeros."""
        return list(map(loops_of, maps_of(self.op)))

    @property
    def is_plain(self) -> bool:
        """Whether sizes are known, operands read at loops and zeros, and elements computed of these and constants."""
        tensors, inner = [read.operands[0] for read in self.reads], walk(self.op)
        plain = [dims_map(len(self.iterators), each) for each in self.places] == maps_of(self.op)
        scalar = captures_constants_alone(self.op, tensors) and not any(len(op.regions) for op in inner)
        return plain and scalar and all(map(is_static, self.inputs))

    def loops(self, read: Any) -> list[int | None]:
        """Return the loops that a tensor is read at; None for what is no loop."""
        return [self.loop_at(place) for place in list(read.operands)[1:]]

    def loop_at(self, value: Any) -> int | None:
        """Return the loop whose index a value of the body is; None where it may be something else."""
        op = producer(value)
        if op is None:
            return self.counted_loop(value)
        if op.name == "arith.select" and less(producer(op.operands[0])) == (op.operands[2], 0):
            return self.loop_at(op.operands[2])
        if op.name == "arith.index_cast":
            return self.loop_at(op.operands[0])
        return dim_of(op) if op.name == INDEX else None

    def counted_loop(self, argument: Any) -> int | None:
        """Return the loop whose index an argument is: the operand counts up along its only large dim."""
        number = self.arguments.index(argument)
        operand = self.op.operands[number]
        loops = [loop for loop, size in zip(self.places[number], operand.type.shape, strict=True) if size > 1]
        return loops[0] if len(loops) == 1 and _counts_up(operand) else None


def less(op: Any) -> tuple[Any, float | None]:
    """Return the value that an op says to be less than a number, and the number; None twice for another op."""
    if op is None or op.name != "arith.cmpi" or ir.IntegerAttr(op.attributes["predicate"]).value not in LESS:
        return None, None
    return op.operands[0], scalar_constant(op.operands[1])


def rebuilt(element: Any, given: Mapping[Any, tuple[Any, Places]], kinds: Sequence[str], other: Other) -> Any:
    """Return the result of an op with an element of a body.

    Args:
        element: The element.
        given: The operands, and the loops that their dims are read at, by the values of the body that are read from
            them; the last one is what the result starts with.
        kinds: The kinds of the loops.
        other: Returns what stands in place of a value of the body; None for a copy of what makes it.
    """
    (*inputs, init), places = zip(*given.values(), strict=True)

    def body(*scalars: Any) -> Any:
        made = dict(zip(given, scalars, strict=True))

        def again(value: Any) -> Any:
            if value not in made and (result := other(value, again)) is not None:
                made[value] = result
            if value not in made:
                op = producer(value)
                made.update(zip(op.results, copied(op, list(map(again, op.operands))).results, strict=True))
            return made[value]

        return again(element)

    return generic(inputs, init, [dims_map(len(kinds), each) for each in places], kinds, body)


def _counts_up(numbers: Any) -> bool:
    """Say whether a tensor, reshaped or not, has the elements 0, 1, 2 and so on."""
    source = source_of(numbers, lambda op: op.name in (EXPAND, COLLAPSE))
    value, op = constant_of(source), producer(source)
    counts = isinstance(value, ir.DenseIntElementsAttr) and list(value) == list(range(len(value)))
    return counts or (op is not None and computes_range(op))


def computes_range(op: Any) -> bool:
    """Say whether an op computes a tensor of one dim whose elements are 0, 1, 2 and so on, from loop indices."""
    if op.name != GENERIC or len(op.operands) != 1 or op.result.type.rank != 1:
        return False
    inner = list(walk(op))
    names = [one.name for one in inner] == [INDEX, "arith.index_cast", "linalg.yield"]
    return names and all(after.operands[0] == before.result for before, after in pairwise(inner))
