"""Programs in which numbers scale and shift every channel of what a linear op computes, as frameworks export them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

BATCH_NORM = ("subf", "mulf", "mulf", "addf")
"""What PyTorch's batch norm does to each element, with a vector over the channels each."""


@dataclass(frozen=True)
class Scaled:
    """A linear op, and what follows.

    Attributes:
        op: Name of the op in linalg.
        image, weights, result: Sizes of its operands.
        channel: The dimension of the (moved) result that channels lie along.
        moved: The sizes of the result as it is scaled, where dimensions are merged before.
        merged: Which dimensions of the result are merged.
        steps: The scalar ops, in their order; each has a vector over the channels as its second operand.
        attributes: Attributes of the op.
        left: Whether the weights are its first operand.
        bias: Whether the sums start with a vector over the channels.
        seed: Programs with other seeds have other numbers.
        exact: Whether no result is rounded: all numbers are small integers, or powers of two.
    """

    op: str
    image: Sequence[int]
    weights: Sequence[int]
    result: Sequence[int]
    channel: int = 1
    moved: Sequence[int] = ()
    merged: str = ""
    steps: Sequence[str] = BATCH_NORM
    attributes: str = ""
    left: bool = False
    bias: bool = False
    seed: int = 0
    exact: bool = True

    @property
    def shape(self) -> Sequence[int]:
        """Sizes of what is scaled."""
        return self.moved or self.result

    def with_steps(self, *steps: str) -> Scaled:
        """Return the same with other ops behind."""
        return replace(self, steps=steps)

    def text(self, name: str = "main") -> str:
        """Return a function; the numbers of step n are called ``%numbers<n>``, its result is ``%step<n>``."""
        image, weights, result = map(tensor_of, (self.image, self.weights, self.result))
        operands, types = (
            ("%weights, %image", f"{weights}, {image}") if self.left else ("%image, %weights", f"{image}, {weights}")
        )
        value, body = "%sums", ""
        if self.merged:
            value = "%moved"
            body = f"""
  %moved = tensor.collapse_shape %sums {self.merged} : {result} into {tensor_of(self.shape)}"""
        for number, step in enumerate(self.steps):
            body += self.step(number, step, value)
            value = f"%step{number}"
        return f"""func.func @{name}(%image: {image}) -> {tensor_of(self.shape)} {{
  %zero = arith.constant 0.0 : f32
  %weights = arith.constant dense<{listed(self.values("weights"))}> : {weights}
  %empty = tensor.empty() : {result}{self._start()}
  %sums = linalg.{self.op} {self.attributes} ins({operands} : {types}) outs(%start : {result}) -> {result}{body}
  return {value} : {tensor_of(self.shape)}
}}
"""

    def _start(self) -> str:
        result = tensor_of(self.result)
        if not self.bias:
            return f"\n  %start = linalg.fill ins(%zero : f32) outs(%empty : {result}) -> {result}"
        channels = f"tensor<{self.result[self.channel]}xf32>"
        others = [dim for dim in range(len(self.result)) if dim != self.channel]
        return f"""
  %bias = arith.constant dense<{listed(self.values("bias"))}> : {channels}
  %start = linalg.broadcast ins(%bias : {channels}) outs(%empty : {result}) dimensions = {others}"""

    def step(self, number: int, op: str, value: str) -> str:
        """Return an op that reads a value; ``op`` is a scalar op, or one with its operands: ``subf %n, %x``."""
        shape, rank = self.shape, len(self.shape)
        behind = rank - self.channel - 1
        dims = ", ".join(f"d{dim}" for dim in range(rank))
        of_channel = ", ".join([f"d{self.channel}", *["0"] * behind])
        vector = [shape[self.channel], *[1] * behind]
        numbers = listed(self.numbers(number).reshape(vector))
        scalar = op if "%" in op else f"{op} %x, %n"
        kinds = ", ".join(['"parallel"'] * rank)
        own, theirs = tensor_of(shape), tensor_of(vector)
        return f"""
  %numbers{number} = arith.constant dense<{numbers}> : {theirs}
  %empty{number} = tensor.empty() : {own}
  %step{number} = linalg.generic {{indexing_maps = [affine_map<({dims}) -> ({dims})>,
      affine_map<({dims}) -> ({of_channel})>, affine_map<({dims}) -> ({dims})>], iterator_types = [{kinds}]}}
      ins({value}, %numbers{number} : {own}, {theirs}) outs(%empty{number} : {own}) {{
  ^bb0(%x: f32, %n: f32, %o: f32):
    %y = arith.{scalar} : f32
    linalg.yield %y : f32
  }} -> {own}"""

    def numbers(self, number: int) -> np.ndarray:
        """Return the vector over the channels of a step."""
        scales = self.steps[number].startswith(("mulf", "divf"))
        return self._drawn([self.shape[self.channel]], number + 1, powers=scales)

    def values(self, of: str) -> np.ndarray:
        """Return ``weights``, ``bias`` or ``image``."""
        shapes = {"weights": self.weights, "bias": [self.result[self.channel]], "image": self.image}
        return self._drawn(shapes[of], 100 + [*shapes].index(of))

    def _drawn(self, shape: Sequence[int], number: int, *, powers: bool = False) -> np.ndarray:
        rng = np.random.default_rng((self.seed, number))
        if not self.exact:
            return rng.standard_normal(shape).astype(np.float32)
        drawn = (
            2.0 ** rng.integers(-2, 3, shape) * rng.choice([-1.0, 1.0], shape) if powers else rng.integers(-3, 4, shape)
        )
        return drawn.astype(np.float32)


def as_argument(text: str, name: str) -> str:
    """Return a program in which a constant is an argument."""
    constant = re.compile(rf"\n  %{name} = arith.constant dense<[^>]*> : (tensor<[^>]*>)")
    found = constant.search(text)
    assert found
    return constant.sub("", text).replace("%image:", f"%{name}: {found[1]}, %image:")


def as_parameters(text: str) -> str:
    """Return a program whose tensors of constants are parameters, which it reads when it is loaded."""
    constant = re.compile(r"\n  %(\w+) = arith.constant dense<[^>]*> : (tensor<[^>]*>)")
    named = [
        f'util.global private @{n} = #flow.parameter.named<"model"::"{n}"> : {t}' for n, t in constant.findall(text)
    ]
    return "\n".join([*named, constant.sub(r"\n  %\1 = util.global.load @\1 : \2", text)])


def read_again(text: str, value: str) -> str:
    """Return a program whose result also adds a value of the same size that the program computes."""
    last, kind = re.findall(r"return (%\w+) : (tensor<[^>]*>)", text)[0]
    return text.replace(f"  return {last}", f"  %both = arith.addf {last}, {value} : {kind}\n  return %both")


def joined(first: str, second: str) -> str:
    """Return a program that passes the result of one program to another, whose values are called ``%other_...``."""
    (last, own), (_, kind) = (re.findall(r"return (%\w+) : (tensor<[^>]*>)", text)[0] for text in (first, second))
    body = re.sub(r"%(\w+)", r"%other_\1", second.partition("{\n")[2]).replace("%other_image", last)
    return first.partition("  return")[0].replace(f"-> {own} {{", f"-> {kind} {{", 1) + body


def tensor_of(shape: Sequence[int]) -> str:
    return f"tensor<{'x'.join(map(str, [*shape, 'f32']))}>"


def listed(values: np.ndarray) -> str:
    """Return numbers as the text of a dense constant."""
    return str(values.astype(np.float64).tolist())


CONVOLUTION = Scaled("conv_2d_nchw_fchw", (1, 3, 6, 7), (8, 3, 3, 3), (1, 8, 4, 5))
DEPTHWISE = Scaled("depthwise_conv_2d_nchw_chw", (1, 8, 6, 7), (8, 3, 3), (1, 8, 4, 5))
GROUPED = Scaled(
    "conv_2d_ngchw_gfchw", (1, 2, 3, 6, 7), (2, 4, 3, 3, 3), (1, 2, 4, 4, 5),
    moved=(1, 8, 4, 5), merged="[[0], [1, 2], [3], [4]]",
)  # fmt: skip
LINEAR_OPS = {
    "convolution": CONVOLUTION,
    "strided convolution": Scaled(
        "conv_2d_nchw_fchw", (1, 3, 9, 9), (8, 3, 3, 3), (1, 8, 4, 4), attributes="{strides = dense<2> : tensor<2xi64>}"
    ),
    "channels last": Scaled("conv_2d_nhwc_hwcf", (1, 6, 7, 3), (3, 3, 3, 8), (1, 4, 5, 8), channel=3),
    "one dimension": Scaled("conv_1d_ncw_fcw", (2, 3, 9), (8, 3, 3), (2, 8, 7)),
    "three dimensions": Scaled("conv_3d_ncdhw_fcdhw", (1, 2, 4, 4, 4), (6, 2, 3, 3, 3), (1, 6, 2, 2, 2)),
    "depthwise": DEPTHWISE,
    "depthwise channels last": Scaled("depthwise_conv_2d_nhwc_hwc", (1, 6, 7, 8), (3, 3, 8), (1, 4, 5, 8), channel=3),
    "grouped": GROUPED,
    "product": Scaled("matmul", (5, 6), (6, 8), (5, 8)),
    "weights on the left": Scaled("matmul", (6, 5), (8, 6), (8, 5), channel=0, left=True),
    "weights of every batch": Scaled("batch_matmul", (2, 5, 6), (2, 6, 8), (2, 5, 8), channel=2),
    "one matrix of every batch": Scaled("batch_matmul", (3, 5, 6), (3, 6, 8), (3, 5, 8), channel=0),
    "bias": replace(CONVOLUTION, bias=True),
    "the first two steps": CONVOLUTION.with_steps(*BATCH_NORM[:2]),
    "scaled alone": CONVOLUTION.with_steps("mulf"),
    "divided and negated": CONVOLUTION.with_steps("divf", "negf %x", "addf"),
    "subtracted from": CONVOLUTION.with_steps("subf %n, %x", "mulf"),
    "shifted twice": CONVOLUTION.with_steps("addf", "subf"),
    "bias and shift": replace(CONVOLUTION, bias=True, steps=("addf",)),
}
