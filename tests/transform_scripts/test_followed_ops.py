"""Ops are found again after peeling, unrolling and passes: modules as users write them, compiled and checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pytest
from payload_text import Payload
from payloads import PAYLOADS

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.testing import ModuleTests
from mlir_sched.transform_scripts import matchers, patterns
from mlir_sched.transform_scripts.module import ScheduleModule, TransformModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Contraction, Reduction, reduction_loops

pytestmark = pytest.mark.landing

NAMES = ("matmul_uneven", "bias_gelu", "two_epilogues")
"""Among them a matmul without even tiles, and one with two epilogues of the same name."""


class OnMatmuls(ModuleTests):
    payloads: ClassVar[Mapping[str, Payload]] = {name: PAYLOADS[name] for name in NAMES}
    candidates = 2

    def models(self) -> Mapping[str, str]:
        return {name: payload.text for name, payload in self.payloads.items()}


class OfMatmuls(ScheduleModule):
    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Contraction | None:
        mm = matchers.contraction(op, dispatch)
        return mm if mm and len(mm.tiled) == 2 and len(op.extents) == 3 else None


class Unrolled(OfMatmuls):
    """Unrolls the rows of a tile, then tiles and vectorizes what has become several ops."""

    name = "unrolled"

    def schedule(self, s: Schedule, mm: Contraction) -> None:
        m, n = mm.tiled
        rows = s.sample_tile("rows", m, most=4)
        columns = s.sample_tile("columns", n, most=16)
        step = s.sample_tile("step", mm.reduction, most=4)
        s.tile(mm.root, {m: rows, n: columns}, fuse=True)
        s.unroll(*s.tile(mm.op, {m: 1}))
        s.tile(mm.op, {mm.reduction: step})
        s.vectorize(*mm.ops, then=patterns.CONTRACT)


class Peeled(OfMatmuls):
    """Peels what the tiles leave over, then tiles full tiles and tails alike."""

    name = "peeled"

    def schedule(self, s: Schedule, mm: Contraction) -> None:
        m, n = mm.tiled
        rows = s.sample_int("rows", 2, 6)
        columns = s.sample_int("columns", 8, 24, step=8)
        s.tile(mm.root, {m: rows, n: columns}, fuse=True)
        s.peel()
        step = s.sample_tile("step", mm.reduction, most=4)
        s.tile(mm.op, {mm.reduction: step})
        s.vectorize(*mm.ops, then=patterns.CONTRACT)


class Copied(OfMatmuls):
    """Schedules every copy of a tile that peeling makes by itself."""

    name = "copied"

    def schedule(self, s: Schedule, mm: Contraction) -> None:
        m, n = mm.tiled
        rows = s.sample_int("rows", 2, 4)
        s.tile(mm.root, {m: rows, n: 16}, fuse=True)
        for op in s.copies(*mm.ops):
            s.unroll(*s.tile(op, {m: 1}))
            if op is mm.op:
                s.tile(op, {mm.reduction: 1})
            if op is not mm.fill:
                s.vectorize(op)
        s.vectorize(*mm.beside[:1])  # all fills at once


class Passed(OfMatmuls):
    """Runs a pass between two tiles, and fuses once more after unrolling."""

    name = "passed"

    def schedule(self, s: Schedule, mm: Contraction) -> None:
        m, n = mm.tiled
        s.tile(mm.root, {m: s.sample_tile("rows", m, most=4)}, fuse=True)
        s.run_pass("canonicalize")
        s.unroll(*s.tile(mm.op, {mm.reduction: mm.reduction.extent // 4}))
        s.run_pass("cse")
        s.tile(mm.root, {n: s.sample_tile("columns", n, most=16)}, fuse=True)
        s.tile(mm.op, {mm.reduction: 1})
        s.vectorize(*mm.ops, then=patterns.CONTRACT)


class PartialSums(ScheduleModule):
    """Runs a pass between splitting a reduction and vectorizing it."""

    name = "partial_sums"

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Reduction | None:
        return matchers.reduction(op, dispatch)

    def schedule(self, s: Schedule, found: Reduction) -> None:
        (row,) = found.rows
        s.tile(found.root, {row: s.sample_tile("rows", row, most=4)}, fuse=True)
        (columns,) = (loop for loop in reduction_loops(found.first))
        s.rfactor(found.first, {columns: s.sample_tile("lanes", columns, most=16, static=True)})
        s.run_pass("canonicalize")
        s.vectorize(*found.ops)


class TestUnrolled(OnMatmuls):
    def module(self) -> TransformModule:
        return Unrolled()


class TestPeeled(OnMatmuls):
    def module(self) -> TransformModule:
        return Peeled()


class TestCopied(OnMatmuls):
    def module(self) -> TransformModule:
        return Copied()


class TestPassed(OnMatmuls):
    payloads: ClassVar[Mapping[str, Payload]] = {name: PAYLOADS[name] for name in ("matmul", "bias_gelu")}

    def module(self) -> TransformModule:
        return Passed()


class TestPartialSums(OnMatmuls):
    payloads: ClassVar[Mapping[str, Payload]] = {"row_sum": PAYLOADS["row_sum"]}

    def module(self) -> TransformModule:
        return PartialSums()
