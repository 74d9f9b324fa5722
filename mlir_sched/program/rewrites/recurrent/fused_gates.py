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

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.linalg_ops import EXPAND
from mlir_sched.program.rewrites.placed.placed_rewrite import PlacedRewrite
from mlir_sched.program.rewrites.recurrent.cell import Cell
from mlir_sched.program.rewrites.recurrent.cell_finding import cells
from mlir_sched.program.rewrites.walked_program import WalkedProgram


@dataclass(frozen=True)
class FusedGates(PlacedRewrite[Cell]):
    """Puts products of one row and the element-wise ops behind them into one dispatch."""

    name = "fused_gates"
    typed = True

    def sites(self, program: WalkedProgram) -> list[Cell]:
        """Return the cells."""
        return cells(program)

    def compute(self, site: Cell, *inputs: Any) -> Sequence[Any]:
        """Return the results of a cell, computed by one dispatch."""
        return site.computed(dict(zip(site.inputs, inputs, strict=True)))

    def marked(self, result: Any) -> Any:
        """Return the dispatch."""
        op = producer(result[0])
        return producer(op.operands[0]) if op.name == EXPAND else op
