"""Planted wrong results in every element type, of dispatches and of whole programs, and right ones beside them.

The untuned program adds one term after the other, rounding to its type each time, as IREE's own code does; the right
candidate adds in 16 lanes. Whatever is planted has to be told from that difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest
from array_device import ArrayDevice, Function
from rule_ops import dispatch, epilogue, matmul, operand

from mlir_sched.payload import Dispatch, LinalgOp, OpKind, TensorSpec
from mlir_sched.runner.checks.numeric_checks import checks_for_dispatch, checks_for_model
from mlir_sched.runner.program import Program
from mlir_sched.runner.worker.workspace import Workspace
from mlir_sched.tensors.element_types import DTYPES, Array

M, N, K = 48, 64, 1024
LANES = 16
CASTS = ("arith.extf", "arith.extf", "arith.mulf", "arith.addf")
MODULAR = ("arith.extsi", "arith.extsi", "arith.muli", "arith.addi")


class Case:
    """A product of matrices in some types, perhaps with a function of the result.

    Attributes:
        dispatch: Its description.
        inputs, outputs: Its tensors.
    """

    def __init__(self, element_type: str, total: str, made: str, tanh: bool = False) -> None:
        casts = {"i32": MODULAR}.get(total, ("arith.mulf", "arith.addf") if total == element_type else CASTS)
        body = [*(["math.tanh"] if tanh else []), *(["arith.truncf"] if made != total else [])]
        product = matmul(K, element_type, total, casts, M, N)
        self.dispatch: Dispatch = dispatch(product, *([epilogue(made, tuple(body), M, N, total)] if body else []))
        self.inputs = tuple(operand.tensor for operand in product.inputs)
        self.outputs = (TensorSpec((M, N), made),)
        self._total, self._made, self._tanh = DTYPES[total], DTYPES[made], tanh

    def compute(self, inputs: Sequence[Array], *, lanes: int, terms: slice = slice(None)) -> Array:
        """Return the result of adding in so many lanes, of some of the terms."""
        lhs, rhs = (array.astype(self._total) for array in (inputs[0][:, terms], inputs[1][terms]))
        return self._finish(_sum_in_lanes(lhs, rhs, lanes, self._total))

    def _finish(self, total: Array) -> Array:
        wide = np.tanh(total.astype(np.float32) / 32) if self._tanh else total
        return wide.astype(self._made)


def _sum_in_lanes(lhs: Array, rhs: Array, lanes: int, dtype: np.dtype[np.generic]) -> Array:
    sums = np.zeros((lanes, M, N), dtype)
    for first in range(0, lhs.shape[1], lanes):
        pieces = lhs[:, first : first + lanes].T[:, :, None], rhs[first : first + lanes][:, None, :]
        sums[: len(pieces[0])] += pieces[0] * pieces[1]
    while len(sums) > 1:
        sums = sums[::2] + sums[1::2]
    total: Array = sums[0]
    return total


CASES = {
    "f32": Case("f32", "f32", "f32"),
    "f16": Case("f16", "f16", "f16"),
    "f16 summed in f32": Case("f16", "f32", "f16"),
    "bf16": Case("bf16", "bf16", "bf16"),
    "bf16 summed in f32": Case("bf16", "f32", "bf16"),
    "bf16 made f32": Case("bf16", "f32", "f32"),
    "i8": Case("i8", "i32", "i32"),
    "tanh in f32": Case("f32", "f32", "f32", tanh=True),
    "tanh in f16": Case("f16", "f16", "f16", tanh=True),
    "tanh in bf16": Case("bf16", "bf16", "bf16", tanh=True),
    "tanh of f32 made bf16": Case("bf16", "f32", "bf16", tanh=True),
}
TILE = slice(16, 24), slice(32, 48)


def _zeros(made: Array, right: Array) -> None:
    made.fill(0)


def _nothing(made: Array, right: Array) -> None:
    """Leave the buffer as it is."""


def _skipped_tail(made: Array, right: Array) -> None:
    made[:-3] = right[:-3]


def _wrong_tile(made: Array, right: Array) -> None:
    made[...] = right
    made[TILE] = right[:8, :16]


def _tile_of_zeros(made: Array, right: Array) -> None:
    made[...] = right
    made[TILE] = 0


def _half(made: Array, right: Array) -> None:
    made[...] = (right / 2).astype(made.dtype)


FAULTS = {
    "zeros": _zeros,
    "nothing written": _nothing,
    "skipped tail": _skipped_tail,
    "wrong tile": _wrong_tile,
    "tile of zeros": _tile_of_zeros,
    "half as much": _half,
}
"""What is written in place of the right result."""


def results_of(case: Case) -> Callable[..., Array]:
    """Return the function of inputs, lanes and first term that gives a case's result, computed once."""

    @cache
    def result(key: bytes, lanes: int, start: int) -> Array:
        shapes = [(spec.shape, DTYPES[spec.element_type]) for spec in case.inputs]
        split = shapes[0][0][0] * shapes[0][0][1] * shapes[0][1].itemsize
        pieces = [
            np.frombuffer(part, dtype).reshape(shape)
            for part, (shape, dtype) in zip((key[:split], key[split:]), shapes, strict=True)
        ]
        return case.compute(pieces, lanes=lanes, terms=slice(start, None))

    def of(inputs: Sequence[Array], lanes: int = LANES, start: int = 0) -> Array:
        return result(b"".join(array.tobytes() for array in inputs), lanes, start)

    return of


def functions(case: Case) -> dict[str, Function]:
    """Return the programs of a case by name: untuned, right and wrong ones."""
    of, kept = results_of(case), list[Array]()

    def previous(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        kept.append(of(inputs))
        np.copyto(outputs[0], kept[-2] if len(kept) > 1 else kept[-1])

    def planted(fault: Callable[[Array, Array], None]) -> Function:
        return lambda inputs, outputs: fault(outputs[0], of(inputs))

    return {
        "untuned": lambda inputs, outputs: np.copyto(outputs[0], of(inputs, lanes=1)),
        "right": lambda inputs, outputs: np.copyto(outputs[0], of(inputs)),
        "missing slice of k": lambda inputs, outputs: np.copyto(outputs[0], of(inputs, start=8)),
        "result of the call before": previous,
        **{name: planted(fault) for name, fault in FAULTS.items()},
    }


@cache
def workspace_of(name: str, level: str) -> tuple[Workspace, ArrayDevice]:
    """Return the workspace of a case, and its device."""
    case = CASES[name]
    device = ArrayDevice(functions(case))
    checks = (
        checks_for_dispatch(case.dispatch) if level == "dispatch" else checks_for_model(case.outputs, [case.dispatch])
    )
    return Workspace(device, program(name, level, "untuned"), checks), device  # type: ignore[arg-type]


def program(name: str, level: str, entry: str) -> Program:
    return Program(b"", entry, CASES[name].inputs, CASES[name].outputs, level == "dispatch")


def verdicts(name: str, level: str, entry: str) -> list[str | None]:
    """Return what the checks say, in the order in which the runner asks for them."""
    return verdicts_on(*workspace_of(name, level), program(name, level, entry))


def verdicts_on(workspace: Workspace, device: ArrayDevice, judged: Program) -> list[str | None]:
    loaded = device.load(judged)
    return [workspace.verify(loaded, check) for check in (*range(len(workspace.checks)), 0)]


@pytest.mark.parametrize("level", ["dispatch", "program"])
@pytest.mark.parametrize("name", CASES)
def test_a_right_result_that_adds_in_another_order_is_accepted(name: str, level: str) -> None:
    assert set(verdicts(name, level, "right")) == {None}


@pytest.mark.parametrize("fault", [*FAULTS, "missing slice of k", "result of the call before"])
@pytest.mark.parametrize("level", ["dispatch", "program"])
@pytest.mark.parametrize("name", CASES)
def test_a_planted_fault_is_rejected(name: str, level: str, fault: str) -> None:
    assert any(verdicts(name, level, fault))


# Two outputs of different types


@cache
def workspace_of_two() -> tuple[Workspace, ArrayDevice]:
    """Return the workspace of a program with a product in f32 and one in bf16, and its device."""
    device = ArrayDevice(
        {
            "untuned": _of_two(0, np.copyto, lanes=1),
            "right": _of_two(0, np.copyto),
            **{f"{fault} {position}": _of_two(position, FAULTS[fault]) for fault in FAULTS for position in range(2)},
        }
    )
    outputs = program_of_two("untuned").outputs
    checks = checks_for_model(outputs, [case.dispatch for case in TWO])
    return Workspace(device, program_of_two("untuned"), checks), device  # type: ignore[arg-type]


TWO = CASES["f32"], CASES["bf16"]
RESULTS_OF_TWO = [results_of(case) for case in TWO]


def program_of_two(entry: str) -> Program:
    return Program(b"", entry, TWO[0].inputs + TWO[1].inputs, TWO[0].outputs + TWO[1].outputs, False)


def _of_two(position: int, fault: Callable[[Array, Array], None], lanes: int = LANES) -> Function:
    """Return a program that writes one of its outputs by ``fault``, and the right result to the other."""

    def run(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        for place, (result, output) in enumerate(zip(RESULTS_OF_TWO, outputs, strict=True)):
            right = result(inputs[2 * place : 2 * place + 2], lanes)
            (fault if place == position else np.copyto)(output, right)

    return run


def verdicts_of_two(entry: str) -> list[str | None]:
    return verdicts_on(*workspace_of_two(), program_of_two(entry))


def test_two_right_outputs_are_accepted() -> None:
    assert set(verdicts_of_two("right")) == {None}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("position", [0, 1])
def test_a_fault_in_one_output_is_rejected_there(position: int, fault: str) -> None:
    found = [verdict for verdict in verdicts_of_two(f"{fault} {position}") if verdict]
    assert found
    assert all(f"output {position}" in verdict for verdict in found)


# A number that differs between the calls of a program

FIRST, SECOND = 0.5, 0.25
READ = operand("f32", (M, N), (0, 1), 2)
SCALED = LinalgOp(0, "linalg.generic", OpKind.ELEMENTWISE, ("parallel",) * 2, (M, N), (READ,), (READ,), ("arith.mulf",))
TAKEN = (TensorSpec((M, N), "f32"), TensorSpec((), "f32", by_value=True))


def _scaled(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    np.multiply(inputs[0], inputs[1], out=outputs[0])


def _scaled_by_the_first(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    np.multiply(inputs[0], np.float32(FIRST), out=outputs[0])


@pytest.mark.parametrize("entry", ["right", "always the first number"])
def test_a_kernel_that_is_right_for_the_first_number_alone_is_rejected(entry: str) -> None:
    device = ArrayDevice({"right": _scaled, "always the first number": _scaled_by_the_first})
    untuned, judged = (Program(b"", name, TAKEN, TAKEN[:1], True) for name in ("right", entry))
    checks = checks_for_dispatch(Dispatch((SCALED,), (0,)), [(FIRST,), (SECOND,)])
    found = verdicts_on(Workspace(device, untuned, checks), device, judged)  # type: ignore[arg-type]
    assert any(found) == (entry != "right")
