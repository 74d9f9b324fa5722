"""What tasks compute and move, and which of them are similar."""

from __future__ import annotations

from dataclasses import replace

import iree_cases as cases
import pytest
import rule_ops
from folders import TESTS
from replayed_run import task_of

from mlir_sched.payload import Dispatch, TensorSpec, family_of
from mlir_sched.tasks import TASK_FLAGS, extract
from mlir_sched.tuning.task_search import demand_of


def product(*, k: int = 4, element_type: str = "f32", accumulator: str = "f32", epilogue: bool = False) -> Dispatch:
    after = [rule_ops.epilogue(accumulator, ("arith.maximumf",))] if epilogue else []
    return rule_ops.dispatch(rule_ops.matmul(k, element_type, accumulator), *after)


def test_a_demand_counts_scalar_operations_without_fills_and_the_bytes_of_all_operands() -> None:
    inputs, outputs = (TensorSpec((8, 4), "f32"), TensorSpec((4, 16), "f32")), (TensorSpec((8, 16), "f32"),)
    task = replace(task_of("product", product(epilogue=True)), inputs=inputs, outputs=outputs)
    demand = demand_of(task)
    assert demand is not None
    assert demand.operations == 2 * 8 * 16 * 4 + 8 * 16
    assert demand.moved_bytes == 4 * (8 * 4 + 4 * 16 + 8 * 16)
    assert demand_of(replace(task, dispatch=None)) is None


def test_products_are_similar_whatever_their_shape_and_what_is_fused() -> None:
    assert family_of(product()) == family_of(product(k=100)) == family_of(product(epilogue=True))


def test_products_of_other_types_are_not_similar() -> None:
    families = {family_of(product()), family_of(product(element_type="bf16")), family_of(product(element_type="i8"))}
    assert len(families | {family_of(product(element_type="bf16", accumulator="bf16"))}) == 4


@pytest.mark.promise
def test_the_kinds_of_a_network_have_families_of_their_own() -> None:
    model = extract(TESTS / "exported" / "convolutional.mlir", cases.TARGET, TASK_FLAGS)
    families = {task.name.partition("dispatch_")[2]: family_of(task.dispatch) for task in model.tasks if task.dispatch}
    dense, depthwise = families["1_conv_8x8x8x3x3x3_f32"], families["2_conv_8x8x8x3x3_f32"]
    assert dense.startswith("convolution arith.mulf")
    assert depthwise.startswith("convolution depthwise")
    products = {family for name, family in families.items() if "matmul_like" in name}
    assert len(products) == 1
    assert len({*families.values()}) >= 4
