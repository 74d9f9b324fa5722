"""When a layout, or a form of attention, leaves all other variants no chance."""

from __future__ import annotations

from dataclasses import replace

import pytest
from plans import flagged
from replayed_run import TARGET, matmul_dispatch, task_of
from speedups import timing

from mlir_sched.payload import Dispatch, LinalgOp, LinearExpr, Operand, OpKind, TensorSpec
from mlir_sched.program.profile import ProgramProfile
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.variants.early_decisions import (
    ATTENTION,
    DECIDED_EARLY,
    LAYOUT,
    attention_share,
    channels_first_share,
    favoured_by_profile,
    is_far_faster,
)
from mlir_sched.program.variants.tunability import tunable_variants
from mlir_sched.space.space import Space
from mlir_sched.tasks import Model

SPACE = Space.default(TARGET)


def convolution(*, channels_last: bool) -> Dispatch:
    """Return a convolution of 30 pixels, 3 taps and 8 channels with 16 filters; its loops are f, x, k and c."""
    f, x, k, c = (LinearExpr(tuple(int(i == dim) for i in range(4))) for dim in range(4))
    place = LinearExpr((0, 1, 1, 0))
    image = Operand(TensorSpec((8, 32), "f32"), (c, place))
    taps = Operand(TensorSpec((16, 8, 3), "f32"), (f, c, k))
    result = Operand(TensorSpec((16, 30), "f32"), (f, x))
    if channels_last:
        image = Operand(TensorSpec((32, 8), "f32"), (place, c))
        result = Operand(TensorSpec((30, 16), "f32"), (x, f))
    kinds = ("parallel", "parallel", "reduction", "reduction")
    body = ("arith.mulf", "arith.addf")
    name, kind = "linalg.generic", OpKind.CONVOLUTION
    return Dispatch((LinalgOp(0, name, kind, kinds, (16, 30, 3, 8), (image, taps), (result,), body),), (0,))


def built(
    name: str, ratio: float, seconds: dict[str, float] | None = None, *, channels_last: bool = False
) -> BuiltVariant:
    """Return a variant of a convolution and a product, with a profile of their seconds."""
    dispatches = {"convolution": convolution(channels_last=channels_last), "product": matmul_dispatch(64, 96, 32)}
    tasks = tuple(task_of(task, dispatch) for task, dispatch in dispatches.items())
    profile = ProgramProfile(seconds, dict.fromkeys(seconds, 1)) if seconds else None
    return BuiltVariant(
        flagged(name), Model("model.mlir", (), tasks, ()), b"", timing(1e-3 / ratio, ratio), (), profile
    )


def test_time_in_convolutions_with_channels_first_is_told_from_other_time() -> None:
    seconds = {"convolution": 3e-3, "product": 1e-3}
    assert channels_first_share(built("default", 1.0, seconds)) == pytest.approx(0.75)
    assert channels_first_share(built("default", 1.0, seconds, channels_last=True)) == 0.0
    assert channels_first_share(built("default", 1.0)) == 0.0


@pytest.mark.parametrize(
    ("name", "ratio", "convolutions_s", "dominates"),
    [
        (LAYOUT, 2.1, 0.1, True),
        (LAYOUT, 1.5, 0.1, False),
        (LAYOUT, 1.5, 9.0, True),
        (LAYOUT, 0.9, 9.0, False),
        (ATTENTION, 1.5, 9.0, False),
        (ATTENTION, 2.1, 9.0, True),
    ],
)
def test_a_gain_is_enough_where_the_default_spends_its_time_in_the_other_layout(
    name: str, ratio: float, convolutions_s: float, dominates: bool
) -> None:
    default = built("default", 1.0, {"convolution": convolutions_s, "product": 1.0})
    assert is_far_faster(name, ratio, default) is dominates
    other = replace(built(name, ratio), model=built(name, ratio, channels_last=True).model)
    tuned = [variant.variant.name for variant in tunable_variants([default, other], SPACE, TARGET)]
    assert ("default" not in tuned) is dominates
    tuned = [variant.variant.name for variant in tunable_variants([default, other], SPACE, TARGET, dominant=[name])]
    assert tuned == [name]


@pytest.mark.parametrize(("constants", "share"), [((0,), 0.25), ((1,), 0.0), ((0, 1), 0.0), ((), 0.0)])
def test_a_product_of_constant_rows_with_columns_has_its_channels_first(
    constants: tuple[int, ...], share: float
) -> None:
    default = built("default", 1.0, {"convolution": 3.0, "product": 1.0}, channels_last=True)
    convolution, product = default.model.tasks
    assert product.dispatch is not None
    (op,) = (op for op in product.dispatch.ops if op.kind is OpKind.CONTRACTION)
    inputs = tuple(operand.tensor for operand in op.inputs)
    product = replace(product, inputs=inputs, constants=constants)
    default = replace(default, model=replace(default.model, tasks=(convolution, product)))
    assert channels_first_share(default) == pytest.approx(share)


def test_the_profile_speaks_for_what_replaces_most_of_the_time() -> None:
    default = built("default", 1.0, {"convolution": 4.0, "product": 5.0, "attention": 6.0})
    (convolution, product) = default.model.tasks
    attention = replace(product, name="attention", source="iree_linalg_ext.attention ...", dispatch=None)
    default = replace(default, model=replace(default.model, tasks=(convolution, product, attention)))
    assert attention_share(default) == pytest.approx(0.4)
    assert favoured_by_profile(default, DECIDED_EARLY) == [ATTENTION]
    assert favoured_by_profile(default, [LAYOUT]) == []
    assert is_far_faster(ATTENTION, 1.1, default)
    more = replace(default, profile=ProgramProfile({"convolution": 9.0, "product": 1.0, "attention": 6.0}, {}))
    assert favoured_by_profile(more, DECIDED_EARLY) == [LAYOUT, ATTENTION]
    assert favoured_by_profile(replace(default, profile=None), DECIDED_EARLY) == []
