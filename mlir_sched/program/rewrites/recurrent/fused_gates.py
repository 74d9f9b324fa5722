"""The gates of a step, and what they make of its state, in one dispatch with the products that they read.

A cell of a recurrent network (GRU, LSTM) multiplies its state by the weights of several gates, and computes the next
state from their results, element by element. IREE fuses element-wise ops with one product that they read. With a
product for each gate, as ONNX writes a layer, each of these is a dispatch. They run one after the other, and those of a
small cell take less time than it takes to start them.

A gated linear unit, one product of which is a factor of the other one, is such a cell, too, where it has one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.dag_site import Handles
from mlir_sched.program.rewrites.layout.placed_rewrite import PlacedRewrite
from mlir_sched.program.rewrites.linalg_ops import EXPAND
from mlir_sched.program.rewrites.recurrent.cell import Cell
from mlir_sched.program.rewrites.recurrent.cell_finding import cells
from mlir_sched.program.rewrites.replacement import Result, require_same
from mlir_sched.program.rewrites.walked_program import WalkedProgram


@dataclass(frozen=True)
class FusedGates(PlacedRewrite[Cell]):
    """Puts products of one row and the element-wise ops behind them into one dispatch."""

    name = "fused_gates"

    def sites(self, program: WalkedProgram) -> list[Cell]:
        """Return the cells."""
        return cells(program)

    def match(self, root: Any, site: Cell) -> None:
        """Emit the comparison of the ops of a cell, and of the values that several operands of them are."""
        super().match(root, site)
        handles = Handles(root)
        for first, other in site.shared:
            require_same(handles.value(first), handles.value(other))

    def inputs(self, op: Any, site: Cell, *others: Any) -> list[Any]:
        """Emit handles on what the cell reads."""
        del others
        handles = Handles(op)
        return [handles.value(site.read[value]) for value in site.inputs]

    def replaced_results(self, op: Any, site: Cell) -> list[Result]:
        """Emit handles on the ops whose results others read."""
        handles = Handles(op)
        return [(handles.producer(site.ways[output]), 0) for output in site.outputs]

    def types(self, site: Cell) -> list[ir.Type]:
        """Return the types of the arguments of a replacement, and of its results."""
        return [value.type for value in (*site.inputs, *(op.results[0] for op in site.outputs))]

    def compute(self, site: Cell, *inputs: Any) -> Sequence[Any]:
        """Return the results of a cell, computed by one dispatch."""
        return site.computed(dict(zip(site.inputs, inputs, strict=True)))

    def marked(self, result: Any) -> Any:
        """Return the dispatch."""
        op = producer(result[0])
        return producer(op.operands[0]) if op.name == EXPAND else op
