"""Planted kernels of quantised products that go wrong for some bytes only, and right ones that round in another way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest
from array_device import ArrayDevice, Function
from rule_ops import dispatch, matmul, operand

from mlir_sched.payload import Dispatch, LinalgOp, OpKind, TensorSpec
from mlir_sched.runner.checks.numeric_checks import checks_for_dispatch, checks_for_model
from mlir_sched.runner.program import Program
from mlir_sched.runner.worker.workspace import Workspace
from mlir_sched.tensors.element_types import Array

M, N, K = 64, 96, 256
PRODUCT = matmul(K, "i8", "i32", ("arith.extui", "arith.extsi", "arith.muli", "arith.addi"), M, N)
BYTES = PRODUCT.inputs[0].tensor, PRODUCT.inputs[1].tensor
SUMS, ROW, RESULT = TensorSpec((M, N), "i32"), TensorSpec((N,), "i32"), TensorSpec((M, N), "i8")
SCALES = TensorSpec((N,), "f32")
REQUANTISE = (
    "arith.addi", "arith.sitofp", "arith.mulf", "math.roundeven", "arith.maximumf", "arith.minimumf", "arith.fptosi",
)  # fmt: skip
INTEGERS = ("arith.extsi", "arith.muli", "arith.addi", "arith.shrsi", "arith.maxsi", "arith.minsi", "arith.trunci")


def epilogue(body: tuple[str, ...], *read: TensorSpec, producer: int | None = 1) -> LinalgOp:
    rows = [operand(spec.element_type, spec.shape, (1,), 2) for spec in read]
    sums, made = operand("i32", (M, N), (0, 1), 2, producer), operand("i8", (M, N), (0, 1), 2)
    kind = OpKind.ELEMENTWISE
    return LinalgOp(2, "linalg.generic", kind, ("parallel",) * 2, (M, N), (sums, *rows), (made,), body)


def requantised(sums: Array, rows: Sequence[Array], *, nudge: float = 0.0) -> Array:
    """Return sums with a bias, scaled and rounded; ``nudge`` moves values before the rounding, relatively."""
    values = (sums + rows[0]).astype(np.float32) * rows[1]
    rounded: Array = np.clip(np.rint(values * np.float32(1 + nudge)), -128, 127).astype(np.int8)
    return rounded


def fixed_point(sums: Array, rows: Sequence[Array]) -> Array:
    """Return sums with a bias, rescaled by integer arithmetic."""
    wide = (sums + rows[0]).astype(np.int64)
    rounded: Array = np.clip((wide * 1_387_002_112 + (1 << 40)) >> 41, -128, 127).astype(np.int8)
    return rounded


def exact(inputs: Sequence[Array]) -> Array:
    """Return the products of unsigned and signed bytes."""
    return inputs[0].view(np.uint8).astype(np.int32) @ inputs[1].astype(np.int32)


def saturating(inputs: Sequence[Array]) -> Array:
    """Add pairs of products in i16 with saturation, as x86's ``vpmaddubsw`` does."""
    lhs, rhs = inputs[0].view(np.uint8).astype(np.int32), inputs[1].astype(np.int32)
    pairs = (lhs[:, k : k + 2] @ rhs[k : k + 2] for k in range(0, K, 2))
    return sum((np.clip(pair, -(1 << 15), (1 << 15) - 1) for pair in pairs), np.zeros((M, N), np.int32))


def without_lowest(inputs: Sequence[Array]) -> Array:
    """Take -128 for -127, as a kernel does that negates bytes."""
    return exact((inputs[0], np.maximum(inputs[1], -127)))


Sum = Callable[[Sequence[Array]], Array]
Finish = Callable[[Array, Sequence[Array]], Array]
EPILOGUES: dict[str, tuple[tuple[TensorSpec, ...], tuple[str, ...], Finish]] = {
    "floats": ((ROW, SCALES), REQUANTISE, requantised),
    "integers": ((ROW,), INTEGERS, fixed_point),
}


def compute(total: Sum, finish: Finish) -> Function:
    return lambda inputs, outputs: np.copyto(outputs[0], finish(total(inputs), inputs[2:]))


def rounded_otherwise(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Requantise with another rounding of the values before the last."""
    outputs[0][...] = requantised(exact(inputs), inputs[2:], nudge=1.2e-7)


def off_by_one(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Be wrong by one in one of 50 elements."""
    outputs[0][...] = requantised(exact(inputs), inputs[2:])
    flat = outputs[0].reshape(-1)[::50]
    flat += np.where(flat > 0, -1, 1).astype(np.int8)


def off_by_two(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Be wrong by two in one element."""
    outputs[0][...] = requantised(exact(inputs), inputs[2:])
    outputs[0][1, 2] += -2 if outputs[0][1, 2] > 0 else 2


FAULTS: dict[str, Sum] = {"saturating": saturating, "without lowest": without_lowest}
ROUNDED: dict[str, Function] = {
    "rounded otherwise": rounded_otherwise, "off by one": off_by_one, "off by two": off_by_two,
}  # fmt: skip


@cache
def workspace_of(name: str, level: str) -> tuple[Workspace, ArrayDevice]:
    rows, body, finish = EPILOGUES[name]
    described: Dispatch = dispatch(PRODUCT, epilogue(body, *rows))
    functions = {"untuned": exact, **FAULTS}
    device = ArrayDevice({**{entry: compute(total, finish) for entry, total in functions.items()}, **ROUNDED})
    of_model = checks_for_model((RESULT,), [described], integer_ranges=(None,) * (2 + len(rows)))
    checks = checks_for_dispatch(described) if level == "dispatch" else of_model
    return Workspace(device, program(name, level, "untuned"), checks), device  # type: ignore[arg-type]


def program(name: str, level: str, entry: str) -> Program:
    return Program(b"", entry, (*BYTES, *EPILOGUES[name][0]), (RESULT,), level == "dispatch")


def verdicts(name: str, level: str, entry: str) -> list[str | None]:
    workspace, device = workspace_of(name, level)
    return [workspace.verify(device.load(program(name, level, entry)), index) for index in range(len(workspace.checks))]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("level", ["dispatch", "program"])
@pytest.mark.parametrize("name", EPILOGUES)
def test_a_kernel_that_is_wrong_for_some_bytes_is_refused(name: str, level: str, fault: str) -> None:
    assert any(verdicts(name, level, fault))


@pytest.mark.parametrize("level", ["dispatch", "program"])
def test_values_that_round_to_another_integer_at_a_tie_are_right(level: str) -> None:
    assert not any(verdicts("floats", level, "rounded otherwise"))


@pytest.mark.parametrize(("entry", "complaint"), [("off by one", "differ by one"), ("off by two", "more than one")])
@pytest.mark.parametrize("level", ["dispatch", "program"])
def test_more_steps_than_rounding_explains_are_wrong(level: str, entry: str, complaint: str) -> None:
    assert complaint in str(verdicts("floats", level, entry))


def test_integer_arithmetic_has_no_tolerance() -> None:
    workspace, _ = workspace_of("integers", "dispatch")
    reference = np.zeros((M, N), np.int8)
    assert {check.tolerance_for(RESULT, reference) for check in workspace.checks} == {0.0}


def test_sums_are_drawn_as_large_as_their_rescaling_needs() -> None:
    """A dispatch that only rescales sums of products takes sums whose results are neither all alike nor saturated."""
    described = _alone(epilogue(INTEGERS, producer=None))
    device = ArrayDevice({"rescale": lambda i, o: np.copyto(o[0], fixed_point(i[0], (np.zeros(N, np.int32),)))})
    rescale = Program(b"", "rescale", (SUMS,), (RESULT,), True)
    workspace = Workspace(device, rescale, checks_for_dispatch(described))  # type: ignore[arg-type]
    for case in workspace._cases:
        assert np.unique(case.references[0]).size > 16


def _alone(op: LinalgOp) -> Dispatch:
    fields = {name: getattr(op, name) for name in LinalgOp.__dataclass_fields__}
    return Dispatch((LinalgOp(**{**fields, "index": 0}),), (0,))
