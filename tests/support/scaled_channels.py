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
        steps: The scalar ops behind the op, in their order; each has a vector over the channels as its second operand.
        ahead: The same in front of the op, from the argument on; ``pad`` surrounds the last two dimensions by zeros.
        read: The dimension of the image that channels lie along.
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
    ahead: Sequence[str] = ()
    read: int = 1
    attributes: str = ""
    left: bool = False
    bias: bool = False
    seed: int = 0
    exact: bool = True

    @property
    def shape(self) -> Sequence[int]:
        """Sizes of what is scaled."""
        return self.moved or self.result

    @property
    def argument(self) -> Sequence[int]:
        """Sizes of the argument."""
        pads = self.ahead.count("pad")
        return [*self.image[:-2], *(size - 2 * pads for size in self.image[-2:])] if pads else self.image

    def with_steps(self, *steps: str) -> Scaled:
        """Return the same with other ops behind."""
        return replace(self, steps=steps)

    def after(self, *ahead: str) -> Scaled:
        """Return the same with other ops in front."""
        return replace(self, ahead=ahead)

    def text(self, name: str = "main") -> str:
        """Return a function.

        The numbers of step n are called ``%numbers<n>``, those of step n in front ``%factors<n>``, the results of steps
        ``%step<n>`` and ``%ahead<n>``.
        """
        image, weights, result = map(tensor_of, (self.image, self.weights, self.result))
        front, read = self._in_front()
        operands, types = (
            (f"%weights, {read}", f"{weights}, {image}") if self.left else (f"{read}, %weights", f"{image}, {weights}")
        )
        value, body = "%sums", ""
        if self.merged:
            value = "%moved"
            body = f"""
  %moved = tensor.collapse_shape %sums {self.merged} : {result} into {tensor_of(self.shape)}"""
        for number, step in enumerate(self.steps):
            made, name_of_numbers = f"%step{number}", f"%numbers{number}"
            body += stepped(made, step, value, self.shape, self.channel, name_of_numbers, self.numbers(number))
            value = made
        return f"""func.func @{name}(%image: {tensor_of(self.argument)}) -> {tensor_of(self.shape)} {{
  %zero = arith.constant 0.0 : f32
  %weights = arith.constant dense<{listed(self.values("weights"))}> : {weights}
  %empty = tensor.empty() : {result}{self._start()}{front}
  %sums = linalg.{self.op} {self.attributes} ins({operands} : {types}) outs(%start : {result}) -> {result}{body}
  return {value} : {tensor_of(self.shape)}
}}
"""

    def _in_front(self) -> tuple[str, str]:
        """Return the ops in front of the linear op, and what this reads."""
        text, value, shape = "", "%image", list(self.argument)
        for number, step in enumerate(self.ahead):
            made, own = f"%ahead{number}", tensor_of(shape)
            if step == "pad":
                shape = [*shape[:-2], *(size + 2 for size in shape[-2:])]
                sides = ", ".join(["0"] * (len(shape) - 2) + ["1", "1"])
                places = ", ".join(f"%i{dim}: index" for dim in range(len(shape)))
                text += f"""
  {made} = tensor.pad {value} low[{sides}] high[{sides}] {{
  ^bb0({places}):
    tensor.yield %zero : f32
  }} : {own} to {tensor_of(shape)}"""
            else:
                text += stepped(made, step, value, shape, self.read, f"%factors{number}", self.factors(number))
            value = made
        return text, value

    def _start(self) -> str:
        result = tensor_of(self.result)
        if not self.bias:
            return f"\n  %start = linalg.fill ins(%zero : f32) outs(%empty : {result}) -> {result}"
        channels = f"tensor<{self.result[self.channel]}xf32>"
        others = [dim for dim in range(len(self.result)) if dim != self.channel]
        return f"""
  %bias = arith.constant dense<{listed(self.values("bias"))}> : {channels}
  %start = linalg.broadcast ins(%bias : {channels}) outs(%empty : {result}) dimensions = {others}"""

    def numbers(self, number: int) -> np.ndarray:
        """Return the vector over the channels of a step."""
        return self._drawn([self.shape[self.channel]], number + 1, powers=is_scale(self.steps[number]))

    def factors(self, number: int) -> np.ndarray:
        """Return the vector over the channels of a step in front."""
        return self._drawn([self.image[self.read]], 50 + number, powers=is_scale(self.ahead[number]))

    def values(self, of: str) -> np.ndarray:
        """Return ``weights``, ``bias`` or ``image``."""
        shapes = {"weights": self.weights, "bias": [self.result[self.channel]], "image": self.argument}
        return self._drawn(shapes[of], 100 + [*shapes].index(of))

    def _drawn(self, shape: Sequence[int], number: int, *, powers: bool = False) -> np.ndarray:
        rng = np.random.default_rng((self.seed, number))
        if not self.exact:
            return rng.standard_normal(shape).astype(np.float32)
        drawn = (
            2.0 ** rng.integers(-2, 3, shape) * rng.choice([-1.0, 1.0], shape) if powers else rng.integers(-3, 4, shape)
        )
        return drawn.astype(np.float32)


def stepped(made: str, op: str, value: str, shape: Sequence[int], channel: int, name: str, numbers: np.ndarray) -> str:
    """Return an op that scales or shifts each element of a value.

    Args:
        made: What the result is called.
        op: A scalar op, or one with its operands: ``subf %n, %x``; ``%s`` is a scalar from outside of the body.
        value: What is scaled.
        shape: Its sizes.
        channel: The dimension that the numbers lie along.
        name: What the numbers, or the scalar, are called.
        numbers: Their values; the scalar is the largest magnitude.
    """
    rank, own = len(shape), tensor_of(shape)
    dims, kinds = ", ".join(f"d{dim}" for dim in range(rank)), ", ".join(['"parallel"'] * rank)
    vector = [shape[channel], *[1] * (rank - channel - 1)]
    theirs, of_channel = tensor_of(vector), ", ".join([f"d{channel}", *["0"] * (rank - channel - 1)])
    scalar = op if "%" in op else f"{op} %x, %n"
    if "%s" in op:
        constant = f"{name} = arith.constant {float(np.abs(numbers).max())} : f32"
        maps, read, types, arguments = "", value, own, "%x: f32, %o: f32"
    else:
        constant = f"{name} = arith.constant dense<{listed(numbers.reshape(vector))}> : {theirs}"
        maps, arguments = f"affine_map<({dims}) -> ({of_channel})>, ", "%x: f32, %n: f32, %o: f32"
        read, types = f"{value}, {name}", f"{own}, {theirs}"
    return f"""
  {constant}
  {made}_empty = tensor.empty() : {own}
  {made} = linalg.generic {{indexing_maps = [affine_map<({dims}) -> ({dims})>,
      {maps}affine_map<({dims}) -> ({dims})>], iterator_types = [{kinds}]}}
      ins({read} : {types}) outs({made}_empty : {own}) {{
  ^bb0({arguments}):
    %y = arith.{scalar.replace("%s", name)} : f32
    linalg.yield %y : f32
  }} -> {own}"""


def is_scale(step: str) -> bool:
    """Say whether a step multiplies or divides, so that powers of two round nothing."""
    return step.startswith(("mulf", "divf"))


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


def branched(first: Scaled, *others: Scaled) -> str:
    """Return a program in which other linear ops read what stands in front of the first one; all results are added.

    The values of the others are called ``%other0_...`` and so on.
    """
    text = first.text()
    for number, other in enumerate(others):
        own = re.sub(r"%(\w+)", rf"%other{number}_\1", other.text().partition("{\n")[2])
        body, last = own.replace(f"%other{number}_image", f"%ahead{len(first.ahead) - 1}").split("  return ")
        value = last.split(" :")[0]
        kind = tensor_of(first.shape)
        before, result = text.split("  return ")
        total = f"  %total{number} = arith.addf {result.split(' :')[0]}, {value} : {kind}\n"
        text = f"{before}{body}{total}  return %total{number} : {kind}\n}}\n"
    return text


def stepping(steps: Sequence[str], shape: Sequence[int], channel: int, name: str = "main", seed: int = 0) -> str:
    """Return a function that only scales and shifts its argument."""
    return stepped_alone(Scaled("", shape, (), shape, channel=channel, steps=steps, seed=seed), name)


def stepped_alone(case: Scaled, name: str = "main") -> str:
    """Return a function that does to its argument what follows the linear op."""
    body, value = "", "%image"
    for number, step in enumerate(case.steps):
        numbers = case.numbers(number)
        body += stepped(f"%step{number}", step, value, case.shape, case.channel, f"%numbers{number}", numbers)
        value = f"%step{number}"
    return _function(name, case.shape, case.shape, body, value)


def moving(move: str, shape: Sequence[int], moved: Sequence[int]) -> str:
    """Return a function that only moves its argument ``%image`` to ``%moved``."""
    return _function("main", shape, moved, f"\n  {move}", "%moved")


def _function(name: str, shape: Sequence[int], made: Sequence[int], body: str, value: str) -> str:
    head = f"func.func @{name}(%image: {tensor_of(shape)}) -> {tensor_of(made)} {{"
    return f"{head}{body}\n  return {value} : {tensor_of(made)}\n}}\n"


def tensor_of(shape: Sequence[int]) -> str:
    return f"tensor<{'x'.join(map(str, [*shape, 'f32']))}>"


def listed(values: np.ndarray) -> str:
    """Return numbers as the text of a dense constant."""
    return str(values.astype(np.float64).tolist())


PRODUCT = Scaled("matmul", (5, 6), (6, 8), (5, 8), steps=("addf",), ahead=("mulf", "addf"))
CONVOLUTION = Scaled("conv_2d_nchw_fchw", (1, 3, 6, 7), (8, 3, 3, 3), (1, 8, 4, 5))
DEPTHWISE = Scaled("depthwise_conv_2d_nchw_chw", (1, 8, 6, 7), (8, 3, 3), (1, 8, 4, 5))
GROUPED = Scaled(
    "conv_2d_ngchw_gfchw", (1, 2, 3, 6, 7), (2, 4, 3, 3, 3), (1, 2, 4, 4, 5),
    moved=(1, 8, 4, 5), merged="[[0], [1, 2], [3], [4]]",
)  # fmt: skip
MOVES = {
    "rows": ("%moved = tensor.extract_slice %image[1, 0] [5, 6] [1, 1] : tensor<7x6xf32> to tensor<5x6xf32>", (7, 6)),
    "channels": (
        "%moved = tensor.extract_slice %image[0, 2] [5, 6] [1, 1] : tensor<5x9xf32> to tensor<5x6xf32>", (5, 9)
    ),
    "repeated": (
        "%room = tensor.empty() : tensor<5x6xf32>\n"
        "  %moved = linalg.broadcast ins(%image : tensor<6xf32>) outs(%room : tensor<5x6xf32>) dimensions = [0]",
        (6,),
    ),
    "rotated": (
        "%low = tensor.extract_slice %image[2, 0] [3, 6] [1, 1] : tensor<5x6xf32> to tensor<3x6xf32>\n"
        "  %high = tensor.extract_slice %image[0, 0] [2, 6] [1, 1] : tensor<5x6xf32> to tensor<2x6xf32>\n"
        "  %upper = tensor.cast %low : tensor<3x6xf32> to tensor<?x6xf32>\n"
        "  %moved = tensor.concat dim(0) %upper, %high : (tensor<?x6xf32>, tensor<2x6xf32>) -> tensor<5x6xf32>",
        (5, 6),
    ),
}  # fmt: skip
"""What takes a part of a tensor, repeats or rotates it, to 5 rows of 6 channels; with the sizes of the tensor."""


def moved_in_front(name: str, function: str = "main") -> str:
    """Return a program that scales and shifts, then takes a part or repeats, then multiplies."""
    move, shape = MOVES[name]
    scaled = stepping(("mulf", "addf"), shape, len(shape) - 1, function, seed=3)
    return joined(joined(scaled, moving(move, shape, (5, 6))), PRODUCT.after().text())


def moved_behind(name: str, function: str = "main") -> str:
    """Return a program that multiplies, then takes a part or repeats, then scales and shifts."""
    move, shape = MOVES[name]
    rows = shape[:-1]
    product = Scaled("matmul" if rows else "vecmat", (*rows, 4), (4, shape[-1]), shape, channel=len(rows), steps=())
    multiplied = joined(product.text(function), moving(move, shape, (5, 6)))
    return joined(multiplied, stepping(BATCH_NORM, (5, 6), 1))


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
    "a scalar from outside": CONVOLUTION.with_steps("mulf %x, %s"),
    "another scalar from outside": replace(CONVOLUTION, seed=1).with_steps("mulf %x, %s"),
    "subtracted from a scalar": CONVOLUTION.with_steps("subf %s, %x", "addf"),
    "vectors and scalars": CONVOLUTION.with_steps("addf", "divf %x, %s", "subf %x, %s"),
    "scaled in front": replace(CONVOLUTION, steps=(), ahead=("mulf",)),
    "scaled and padded in front": replace(CONVOLUTION, steps=(), ahead=("mulf", "divf %x, %s", "pad")),
    "batch norm in front, and behind": CONVOLUTION.after(*BATCH_NORM),
    "shifted in front of a shift": replace(CONVOLUTION, steps=("addf",), ahead=("addf",)),
    "shifted in front of a bias": replace(CONVOLUTION, bias=True, steps=(), ahead=("subf %s, %x",)),
    "in front of a depthwise one": replace(DEPTHWISE, steps=("addf",), ahead=("mulf", "addf")),
    "in front of groups": replace(GROUPED, ahead=("mulf", "subf")),
    "in front of a product": PRODUCT,
    "in front of weights on the left": Scaled(
        "matmul", (6, 5), (8, 6), (8, 5), channel=0, left=True, steps=("addf",), read=0, ahead=("mulf", "addf")
    ),
}
