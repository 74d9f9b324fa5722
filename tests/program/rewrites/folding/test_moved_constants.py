"""Numbers behind parts and joins of what linear ops compute go into the weights: the same results, and what stays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checked_rewrites import checked
from iree.compiler import ir
from iree_cases import FLAGS
from rewriting import assert_same_results, compiled_to, library_for, write
from scaled_channels import BATCH_NORM, Scaled, moving, read_again, stepped, stepping
from scaled_channels import joined as in_turn
from scaled_scores import ONE_PRODUCT, one_product

from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.program.rewrites.folding import join, part
from mlir_sched.program.rewrites.folding.folded_constants import FoldedConstants
from mlir_sched.program.rewrites.folding.joined_front import JoinedFront
from mlir_sched.program.rewrites.folding.moved_constants import MovedConstants
from mlir_sched.program.rewrites.linear.composed import Numbers
from mlir_sched.program.rewrites.walked_program import WalkedProgram
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.script.form import script_context

WIDE, NARROW = (Scaled("matmul", (5, 6), (6, size), (5, size), steps=("addf",), seed=size) for size in (8, 4))

IMAGE = Scaled("conv_2d_nchw_fchw", (1, 4, 6, 7), (8, 4, 3, 3), (1, 8, 4, 5), steps=("addf",))


def joined(behind: str = "") -> str:
    """Return a program in which the results of two products of one image are joined, scaled and shifted."""
    wide, narrow = (case.text().split("  return ")[0] for case in (WIDE, NARROW))
    body = narrow.partition("{\n")[2].replace("%", "%narrow_").replace("%narrow_image", "%image")
    begin = wide.replace("-> tensor<5x8xf32> {", "-> tensor<5x12xf32> {", 1)
    join = "%joined = tensor.concat dim(1) %step0, %narrow_step0 : (tensor<5x8xf32>, tensor<5x4xf32>)"
    text = f"{begin}{body}\n  {join} -> tensor<5x12xf32>{behind}\n  return %joined : tensor<5x12xf32>\n}}\n"
    return in_turn(text, stepping(BATCH_NORM, (5, 12), 1))


def joined_in_front() -> str:
    """Return a program that scales and shifts two channels of an image, only scales two others, and joins them."""
    own = (1, 2, 6, 7)
    text = ""
    for name, begin in (("first", 0), ("last", 2)):
        text += f"""
  %{name} = tensor.extract_slice %image[0, {begin}, 0, 0] [1, 2, 6, 7] [1, 1, 1, 1]
      : tensor<1x4x6x7xf32> to tensor<1x2x6x7xf32>"""
    text += stepped("%scaled", "mulf", "%first", own, 1, "%scales", np.array([0.5, -2.0]))
    text += stepped("%shifted", "addf", "%scaled", own, 1, "%shifts", np.array([1.0, 3.0]))
    text += stepped("%halved", "mulf %x, %s", "%last", own, 1, "%half", np.array([0.25]))
    text += """
  %moved = tensor.concat dim(1) %shifted, %halved
      : (tensor<1x2x6x7xf32>, tensor<1x2x6x7xf32>) -> tensor<1x4x6x7xf32>"""
    return in_turn(moving(text, IMAGE.image, IMAGE.image), IMAGE.text())


PROGRAMS = {
    "parts": (one_product(), ONE_PRODUCT, 1),
    "a join": (joined(), WIDE, 2),
    "a join in front": (joined_in_front(), IMAGE, 1),
}
LEFT_ALONE = {
    "parts that overlap": one_product(keys=7),
    "parts whose heads have scales of their own": one_product(scale="mulf"),
    "scores that are shifted": one_product(scale="addf %x, %s"),
    "a whole that something else reads": one_product()
    .replace("  return %result", "  return %both")
    .replace(
        "  return",
        """  %again = tensor.expand_shape %step0 [[0], [1, 2]] output_shape [5, 6, 4]
      : tensor<5x24xf32> into tensor<5x6x4xf32>
  %some = tensor.extract_slice %again[0, 0, 0] [2, 5, 4] [1, 1, 1] : tensor<5x6x4xf32> to tensor<2x5x4xf32>
  %both = arith.addf %result, %some : tensor<2x5x4xf32>
  return""",
    ),
    "a join of which one part has another reader": read_again(
        joined("\n  %padded = tensor.pad %step0 low[0, 2] high[0, 2] {\n  ^bb0(%i: index, %j: index):\n"
               "    tensor.yield %zero : f32\n  } : tensor<5x8xf32> to tensor<5x12xf32>"), "%padded"
    ),
    "a join with the image": in_turn(
        moving("%moved = tensor.concat dim(1) %image, %image : (tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x12xf32>",
               (5, 6), (5, 12)),
        stepping(BATCH_NORM, (5, 12), 1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_what_is_not_moved(name: str) -> None:
    with script_context(), ir.Location.unknown():
        assert all(MovedConstants().finds(WalkedProgram(ir.Module.parse(text))) for text, *_ in PROGRAMS.values())
        assert not MovedConstants().finds(WalkedProgram(ir.Module.parse(LEFT_ALONE[name])))


@pytest.mark.promise
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_moved_is_folded(name: str, tmp_path: Path) -> None:
    text, case, folded = PROGRAMS[name]
    model, arguments = write(tmp_path, text), [case.values("image")]
    flags = library_for(FoldedConstants(), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {"folded_constants": folded}
    assert_same_results(model, flags, arguments, least=10)
    products = [compiled_to(model, each, "flow").count("arith.mulf") for each in (FLAGS, flags)]
    assert products[0] > products[1]


def off_by_one(box: part.Box) -> tuple[slice, ...]:
    """A mistake: a part begins one channel late."""
    *others, (at, size) = zip(box.offsets, box.sizes, strict=True)
    return (*(slice(begin, begin + width) for begin, width in others), slice(at + 1, at + 1 + size))


def swapped(sizes: Iterable[int], initial: int) -> Iterator[int]:
    """A mistake: parts begin where they would in another order."""
    return accumulate(reversed([*sizes]), initial=initial)


def of_the_other_part(self: JoinedFront, own: Sequence[Any], whole: Numbers, other: float) -> Any:
    """A mistake: the numbers of the first part are those of the last one."""
    return IN_ORDER(self, own[::-1], whole, other)


IN_ORDER = JoinedFront._joined
MISTAKES = {
    "parts": (part.Box, "place", property(off_by_one)),
    "a join": (join, "accumulate", swapped),
    "a join in front": (JoinedFront, "_joined", of_the_other_part),
}


@pytest.mark.promise
@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_of_other_channels_are_found_by_the_checks(
    name: str, tmp_path: Path, here: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*MISTAKES[name])
    assert "wrong" in checked(FoldedConstants(), PROGRAMS[name][0], tmp_path, here)
