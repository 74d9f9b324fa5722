"""The payload as plain data: operands."""

from __future__ import annotations

import rule_ops


def test_an_operand_names_the_loop_of_each_dimension() -> None:
    transposed = rule_ops.operand("f32", (16, 8, 12), (1, 0, 2), 3)
    assert transposed.loops == (1, 0, 2)
    assert transposed.dims == (0, 1, 2)
    assert transposed.swapped(0, 2) == (2, 1, 0)
    assert transposed.swapped(1, 1) == (0, 1, 2)
