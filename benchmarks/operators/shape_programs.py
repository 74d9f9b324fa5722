"""Programs of any shape as MLIR text: contractions, convolutions and reductions, with producers and epilogues.

One :class:`Builder` makes one function ``@main``; its methods add ops and return their results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Tensor:
    """A value: its SSA name, shape and element type."""

    name: str
    shape: tuple[int, ...]
    kind: str = "f32"

    @property
    def type(self) -> str:
        """Its MLIR type."""
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}{self.kind}>"


@dataclass
class Builder:
    """Collects the arguments and ops of a function."""

    arguments: list[Tensor] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def argument(self, *shape: int, kind: str = "f32") -> Tensor:
        """Add an argument."""
        self.arguments.append(Tensor(f"%arg{len(self.arguments)}", shape, kind))
        return self.arguments[-1]

    def empty(self, shape: Sequence[int], kind: str = "f32") -> Tensor:
        """Add a tensor without values."""
        return self._add("tensor.empty()", tuple(shape), kind)

    def fill(self, shape: Sequence[int], kind: str = "f32", value: str = "") -> Tensor:
        """Add a tensor filled with one value, by default zero."""
        constant = self._constant(value or _zero(kind), kind)
        start = self.empty(shape, kind)
        return self._add(
            f"linalg.fill ins({constant} : {kind}) outs({start.name} : {start.type}) -> {start.type}",
            start.shape,
            kind,
            typed=False,
        )

    def named(
        self,
        op: str,
        inputs: Sequence[Tensor],
        shape: Sequence[int],
        kind: str = "",
        attributes: str = "",
        start: str = "",
    ) -> Tensor:
        """Add a named linalg op that accumulates into a tensor filled with ``start``, by default with zeros."""
        result = self.fill(shape, kind or inputs[0].kind, start)
        names, types = (", ".join(parts) for parts in zip(*((i.name, i.type) for i in inputs), strict=True))
        text = f"linalg.{op} {attributes} ins({names} : {types}) outs({result.name} : {result.type}) -> {result.type}"
        return self._add(text, result.shape, result.kind, typed=False)

    def generic(
        self,
        loops: str,
        iterators: str,
        inputs: Sequence[tuple[Tensor, str]],
        result: tuple[Tensor, str],
        body: Sequence[str],
    ) -> Tensor:
        """Add a ``linalg.generic``.

        Args:
            loops: Names of the loops, e.g. ``m, n, k``.
            iterators: One letter per loop: p for parallel, r for reduction.
            inputs: Tensors, each with the index expressions that read it.
            result: The tensor that is written, with its index expressions.
            body: Scalar ops on ``%x0, %x1, ..., %out``, each as ``name = op``; the last op makes the result. An op is
                written without types where all of them are the element type of the result.
        """
        kinds = ", ".join({"p": '"parallel"', "r": '"reduction"'}[letter] for letter in iterators)
        maps = ", ".join(f"affine_map<({loops}) -> ({at})>" for _, at in (*inputs, result))
        names, types = (", ".join(parts) for parts in zip(*((i.name, i.type) for i, _ in inputs), strict=True))
        out = result[0]
        scalars = [f"%x{i}: {tensor.kind}" for i, (tensor, _) in enumerate(inputs)] + [f"%out: {out.kind}"]
        inner = "\n".join(f"    {line if ' : ' in line else f'{line} : {out.kind}'}" for line in body)
        last = body[-1].split(" ")[0]
        text = f"""linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      ins({names} : {types}) outs({out.name} : {out.type}) {{
    ^bb0({", ".join(scalars)}):
{inner}
      linalg.yield {last} : {out.kind}
  }} -> {out.type}"""
        return self._add(text, out.shape, out.kind, typed=False)

    def map(
        self,
        inputs: Sequence[tuple[Tensor, str]],
        body: Sequence[str],
        *,
        at: str = "",
        kind: str = "",
        loops: str = "",
    ) -> Tensor:
        """Add an element-wise op; the first input has the shape of the result unless ``at`` permutes its dimensions."""
        first, own = inputs[0]
        loops, at = loops or own, at or own
        extents = dict(zip(own.split(", "), first.shape, strict=True))
        shape = [extents[loop] for loop in at.split(", ")]
        return self.generic(loops, "p" * len(shape), inputs, (self.empty(shape, kind or first.kind), at), body)

    def contract(self, spec: str, a: Tensor, b: Tensor, kind: str = "") -> Tensor:
        """Add a contraction, e.g. ``b m k, b k n -> b m n``; with another result type the inputs are cast."""
        left, right = spec.split(" -> ")
        one, two = (part.split(" ") for part in left.split(", "))
        out = right.split(" ")
        extents = dict(zip((*one, *two), (*a.shape, *b.shape), strict=True))
        summed = [loop for loop in dict.fromkeys((*one, *two)) if loop not in out]
        kind = kind or a.kind
        body = ["%p = arith.mulf %x0, %x1", "%s = arith.addf %out, %p"]
        if kind != a.kind:
            casts = [f"%y{i} = arith.extf %x{i} : {a.kind} to {kind}" for i in (0, 1)]
            body = [*casts, "%p = arith.mulf %y0, %y1", body[1]]
        return self.generic(
            ", ".join((*out, *summed)),
            "p" * len(out) + "r" * len(summed),
            [(a, ", ".join(one)), (b, ", ".join(two))],
            (self.fill([extents[loop] for loop in out], kind), ", ".join(out)),
            body,
        )

    def reduce(
        self, source: Tensor, dims: Sequence[int], body: Sequence[str] = ("%s = arith.addf %out, %x0",), start: str = ""
    ) -> Tensor:
        """Add a reduction over some dimensions of a tensor, by default a sum."""
        loops = [f"d{i}" for i in range(len(source.shape))]
        kept = [i for i in range(len(loops)) if i not in dims]
        result = self.fill([source.shape[i] for i in kept], source.kind, start)
        iterators = "".join("r" if i in dims else "p" for i in range(len(loops)))
        at = ", ".join(loops[i] for i in kept)
        return self.generic(", ".join(loops), iterators, [(source, ", ".join(loops))], (result, at), body)

    def softmax(self, source: Tensor) -> Tensor:
        """Add a softmax over the last dimension."""
        type_, result = source.type, self.empty(source.shape, source.kind)
        last = len(source.shape) - 1
        text = f"linalg.softmax dimension({last}) ins({source.name} : {type_}) outs({result.name} : {type_}) -> {type_}"
        return self._add(text, source.shape, source.kind, typed=False)

    def pad(self, source: Tensor, low: Sequence[int], high: Sequence[int], value: str = "") -> Tensor:
        """Add a padding, by default with zeros."""
        constant = self._constant(value or _zero(source.kind), source.kind)
        shape = tuple(size + a + b for size, a, b in zip(source.shape, low, high, strict=True))
        indices = ", ".join(f"%i{dim}: index" for dim in range(len(shape)))
        text = f"""tensor.pad {source.name} low[{_list(low)}] high[{_list(high)}] {{
  ^bb0({indices}):
    tensor.yield {constant} : {source.kind}
  }} : {source.type} to {Tensor("", shape, source.kind).type}"""
        return self._add(text, shape, source.kind, typed=False)

    def part(self, source: Tensor, offsets: Sequence[int], shape: Sequence[int]) -> Tensor:
        """Add a part of a tensor that begins at offsets."""
        result = Tensor("", tuple(shape), source.kind)
        text = f"tensor.extract_slice {source.name}[{_list(offsets)}] [{_list(shape)}] [{_list([1] * len(shape))}]"
        return self._add(f"{text} : {source.type} to {result.type}", result.shape, source.kind, typed=False)

    def convolution(
        self,
        op: str,
        image: Tensor,
        kernel: Tensor,
        *,
        stride: Sequence[int] = (),
        dilation: Sequence[int] = (),
        padding: Sequence[tuple[int, int]] = (),
        kind: str = "",
        start: str = "",
    ) -> Tensor:
        """Add a named convolution or pooling.

        Args:
            op: The op's name; the letters of its layout say which dimension is which.
            image, kernel: The op's operands; the kernel of a pooling only gives the size of the windows.
            stride, dilation: One number per spatial dimension of the image, by default 1.
            padding: Padding before and behind the image in each spatial dimension, with the value ``start``, or with
                zeros when that is empty.
            kind: Element type of the result, by default that of the image.
            start: Initial value of the accumulators, by default zero.
        """
        layout, taps = _layout(op)
        at = [d for d, letter in enumerate(layout) if letter in "dhw"]
        stride, dilation = tuple(stride) or (1,) * len(at), tuple(dilation) or (1,) * len(at)
        if padding:
            pairs = dict(zip(at, padding, strict=True))
            low, high = ([pairs.get(d, (0, 0))[side] for d in range(len(layout))] for side in (0, 1))
            image = self.pad(image, low, high, start)
        windows = [size for size, letter in zip(kernel.shape, taps, strict=True) if letter in "dhw"]
        extents = [
            (image.shape[d] - step * (window - 1) - 1) // by + 1
            for d, by, step, window in zip(at, stride, dilation, windows, strict=True)
        ]
        attributes = f"{{dilations = {_dense(dilation)}, strides = {_dense(stride)}}}"
        shape = _result_shape(op, image, kernel, layout, taps, dict(zip(at, extents, strict=True)))
        return self.named(op, (image, kernel), shape, kind, attributes, start)

    def program(self, *results: Tensor) -> str:
        """Return the program that returns these values."""
        names, types = (", ".join(parts) for parts in zip(*((r.name, r.type) for r in results), strict=True))
        arguments = ", ".join(f"{argument.name}: {argument.type}" for argument in self.arguments)
        body = "\n".join(f"  {line}" for line in self.lines)
        return f"func.func @main({arguments}) -> ({types}) {{\n{body}\n  return {names} : {types}\n}}\n"

    def _constant(self, value: str, kind: str) -> str:
        return self._add(f"arith.constant {value} : {kind}", (), kind, typed=False).name

    def _add(self, text: str, shape: tuple[int, ...], kind: str, *, typed: bool = True) -> Tensor:
        made = Tensor(f"%v{len(self.lines)}", shape, kind)
        self.lines.append(f"{made.name} = {text}{f' : {made.type}' if typed else ''}")
        return made


def _layout(op: str) -> tuple[str, str]:
    """Return the letters of the image's and of the filter's dimensions."""
    words = [word for word in op.split("_") if word not in ("conv", "depthwise", "pooling", "1d", "2d", "3d")]
    if op.startswith("pooling"):
        return words[0], "".join(letter for letter in words[0] if letter in "dhw")
    return words[0], words[1]


def _result_shape(
    op: str, image: Tensor, kernel: Tensor, layout: str, taps: str, extents: dict[int, int]
) -> tuple[int, ...]:
    sizes = dict(zip(taps, kernel.shape, strict=True))
    channels = [] if op.startswith(("pooling", "depthwise")) else [sizes["f"]]
    shape = []
    for d, letter in enumerate(layout):
        if d in extents:
            shape.append(extents[d])
        elif letter == "c" and channels:
            shape += channels
        else:
            shape.append(image.shape[d])
    return (*shape, *([sizes["m"]] if "m" in sizes else []))


def _zero(kind: str) -> str:
    return "0.0" if "f" in kind else "0"


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _dense(numbers: Sequence[int]) -> str:
    return f"dense<[{_list(numbers)}]> : tensor<{len(numbers)}xi64>"
