"""The products of one row whose results meet in element-wise ops, each with all of these up to what others read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlir_sched.compiler.operations import captured, producer
from mlir_sched.program.rewrites.constant_values import is_constant
from mlir_sched.program.rewrites.linear.linear_op import linear_ops
from mlir_sched.program.rewrites.recurrent.cell import Cell
from mlir_sched.program.rewrites.recurrent.flat import is_flat, is_flat_elementwise, size_of
from mlir_sched.program.rewrites.recurrent.row_product import RowProduct, row_product
from mlir_sched.program.rewrites.walked_program import WalkedProgram

OTHERS = ("linalg.", "flow.")
"""How names of ops begin whose bodies are no blocks of a program: of element by element, and of one dispatch."""
FEWEST_PRODUCTS = 2
"""Products from which a variant is made: with fewer, none is compiled and measured. One product alone is a dispatch,
and what follows its slices another one. As one dispatch, untuned steps of 128 and of 256 features took as long."""
MOST_WEIGHT_BYTES = 1 << 19
"""Most bytes of the weights of a cell with which a variant is made: with more, none is compiled and measured. Nothing
else depends on the bound, as a variant is taken where it is faster. Every step reads all weights: the longer that
takes, the less fewer dispatches can gain. With a product per gate, a program of 8 untuned steps of an LSTM of 128
features (256 KiB) takes 13 % less time as one dispatch per step, one of a GRU (192 KiB) 9 % (likewise). The bound is
the next power of two. Neither larger cells nor tuned programs were compared: from which size on nothing is gained is
not known."""


def cells(program: WalkedProgram) -> list[Cell]:
    """Return the cells of a program."""
    rows = program.known(row_products)
    return [c for block in _blocks(program.module.operation) for c in _Block.of(block, rows, program.constants).cells()]


def row_products(program: WalkedProgram) -> dict[Any, RowProduct]:
    """Return the products of one row of a program by their ops."""
    found = ((begin.op, row_product(begin)) for begin in program.known(linear_ops))
    return {op: product for op, product in found if product is not None}


def _blocks(op: Any) -> Iterator[Any]:
    """Yield all blocks of ops of a program."""
    for block in (block for region in op.regions for block in region):
        yield block
        for inner in (each.operation for each in block):
            if not inner.name.startswith(OTHERS):
                yield from _blocks(inner)


@dataclass
class _Block:
    """A block of a program, read from its first op to its last one.

    The level of a value is the most products of one row that follow each other in front of it. Products of one level do
    not depend on each other, nor does any value of a lower level depend on them.

    Attributes:
        rows: All products of one row.
        globals_: Symbols of the globals that are never written.
        places: The number of every op.
        levels: The levels of values above 0.
        products: The products of one row in the block.
        together: The ops of a cell, by each of them: products, and flat ops whose operands of the same level are of it.
    """

    rows: Mapping[Any, RowProduct]
    globals_: frozenset[str]
    places: dict[Any, int] = field(default_factory=dict)
    levels: dict[Any, int] = field(default_factory=dict)
    products: dict[Any, RowProduct] = field(default_factory=dict)
    together: dict[Any, list[Any]] = field(default_factory=dict)

    @staticmethod
    def of(block: Any, rows: Mapping[Any, RowProduct], globals_: frozenset[str]) -> _Block:
        """Return a block that was read."""
        found = _Block(rows, globals_)
        for op in (each.operation for each in block):
            found._read(op)
        return found

    def cells(self) -> list[Cell]:
        """Return the cells that are a gain, in the order of the program."""
        each = {id(ops): ops for ops in self.together.values()}.values()
        found = [self._cell(self._trimmed({*ops, *self._in_front(ops)})) for ops in each]
        return [cell for cell in found if cell is not None and self._is_in_order(cell)]

    def _read(self, op: Any) -> None:
        """Add the next op."""
        self.places[op] = len(self.places)
        read = [*op.operands, *(captured(op) if op.regions else ())]
        level = max((self.levels.get(value, 0) for value in read), default=0)
        if op in self.rows:
            level, self.products[op], self.together[op] = level + 1, self.rows[op], [op]
        elif level:
            same = [producer(value) for value in read if self.levels.get(value, 0) == level]
            if all(made in self.together for made in same) and is_flat(op):
                self._join(op, same)
        self.levels |= dict.fromkeys(op.results, level) if level else {}

    def _join(self, op: Any, others: Sequence[Any]) -> None:
        """Add an op to the cell of others, which becomes one."""
        ops = [op]
        for each in {id(ops): ops for ops in map(self.together.__getitem__, others)}.values():
            ops += each
        self.together |= dict.fromkeys(ops, ops)

    def _in_front(self, ops: Sequence[Any]) -> list[Any]:
        """Return the flat ops in front of a cell that its flat ops alone read."""
        found, queue = list[Any](), [op for op in ops if op not in self.products]
        for op in queue:
            for value in op.operands:
                made = producer(value)
                if made not in self.places or made in self.together or made in found or not is_flat(made):
                    continue
                read_here = all(use.owner.operation in queue for use in made.results[0].uses)
                if read_here and not is_constant(value, self.globals_):
                    found.append(made)
                    queue.append(made)
        return found

    def _trimmed(self, ops: set[Any]) -> list[Any]:
        """Return the ops of a cell in order, without products and moves at its end, and without what nothing reads."""
        kept = {*ops}
        for op in sorted(ops, key=self.places.__getitem__, reverse=True):
            readers = [use.owner.operation for use in op.results[0].uses]
            if kept.isdisjoint(readers) and not (readers and is_flat_elementwise(op)):
                kept.remove(op)
        return sorted(kept, key=self.places.__getitem__)

    def _cell(self, ops: Sequence[Any]) -> Cell | None:
        """Return ops as a cell; None where they are none."""
        outputs = [op for op in ops if any(use.owner.operation not in ops for use in op.results[0].uses)]
        products, flat = (tuple(op for op in ops if (op in self.products) == each) for each in (True, False))
        if not outputs or not all(map(is_flat_elementwise, outputs)):
            return None
        cell = Cell(outputs[-1], tuple(map(self.products.__getitem__, products)), flat, tuple(outputs))
        alike = {size_of(op.results[0]) for op in outputs} == {cell.size} and cell.size > 1
        whole = alike and {*ops} <= {*cell.ops} and self._are_whole(cell)
        is_gain = len(products) >= FEWEST_PRODUCTS and cell.weight_bytes <= MOST_WEIGHT_BYTES
        return cell if whole and is_gain else None

    def _are_whole(self, cell: Cell) -> bool:
        """Say whether all runs are within their values, and those of what the cell computes at constant places."""
        runs, outside = [run for op in cell.outputs for run in cell.runs(op)], {*cell.inputs}
        fixed = all(not run.varying or run.value in outside for run in runs)
        return fixed and all(run.is_single or run.first + cell.size <= size_of(run.value) for run in runs)

    def _is_in_order(self, cell: Cell) -> bool:
        """Say whether everything that is read is computed in front of the first result."""
        first = self.places[cell.outputs[0]]
        return all(self.places.get(op, -1) < first for op in _makers(cell.inputs))


def _makers(values: Iterable[Any]) -> Iterator[Any]:
    return filter(None, map(producer, values))
