"""When a layout, or a form of attention, leaves all other variants no chance."""

from __future__ import annotations

from dataclasses import replace

import pytest
from replayed_run import TARGET, matmul_dispatch, task_of
from speedups import timing

from mlir_sched.payload import Dispatch, LinalgOp, LinearExpr, Operand, OpKind, TensorSpec
from mlir_sched.program.profile import ProgramProfile
from mlir_sched.program.settling import channels_first_share, is_far_faster
from mlir_sched.program.tunability import worth_tuning
from mlir_sched.program.variant import ATTENTION, LAYOUT, BuiltVariant, Variant
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
        Variant(name, ()), Model("model.mlir", (), tasks, ()), b"", timing(1e-3 / ratio, ratio), (), profile
    )


def test_time_in_convolutions_with_channels_first_is_told_from_other_time() -> None:
    seconds = {"convolution": 3e-3, "product": 1e-3}
    assert channels_first_share(built("default", 1.0, seconds)) == pytest.approx(0.75)
    assert channels_first_share(built("default", 1.0, seconds, channels_last=True)) == 0.0
    assert channels_first_share(built("default", 1.0)) == 0.0


@pytest.mark.parametrize(
    ("name", "ratio", "convolutions_s", "settles"),
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
    name: str, ratio: float, convolutions_s: float, settles: bool
) -> None:
    default = built("default", 1.0, {"convolution": convolutions_s, "product": 1.0})
    assert is_far_faster(name, ratio, default) is settles
    other = replace(built(name, ratio), model=built(name, ratio, channels_last=True).model)
    tuned = [variant.variant.name for variant in worth_tuning([default, other], SPACE, TARGET)]
    assert ("default" not in tuned) is settles
