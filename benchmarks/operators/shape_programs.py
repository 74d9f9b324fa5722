"""Programs of any shape as MLIR text: contractions, convolutions and reductions, with producers and epilogues.

One :class:`Builder` makes one function ``@main``; its methods add ops and return their results.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.mlir_text import FunctionText, Value, generic_over, operands, window_attributes

SUM = ("%s = arith.addf %out, %x0",)
MULTIPLY_ADD = ("%p = arith.mulf %x0, %x1", "%s = arith.addf %out, %p")


@dataclass
class Builder(FunctionText):
    """Collects the arguments and ops of a function."""

    def named(
        self, op: str, inputs: Sequence[Value], shape: Sequence[int], kind: str = "", start: float = 0.0
    ) -> Value:
        """Add a named linalg op, with its attributes, that accumulates into a tensor filled with ``start``."""
        result = self.filled(shape, kind or inputs[0].kind, start)
        made = self.value(result.shape, result.kind)
        self.linalg(made, op, inputs, result)
        return made

    def generic(
        self,
        loops: str,
        iterators: str,
        inputs: Sequence[tuple[Value, str]],
        result: tuple[Value, str],
        body: Sequence[str],
    ) -> Value:
        """Add a ``linalg.generic``.

        Args:
            loops: Names of the loops, e.g. ``m, n, k``.
            iterators: One letter per loop: p for parallel, r for reduction.
            inputs: Values, each with the index expressions that read it.
            result: The tensor that is written, with its index expressions.
            body: Scalar ops on ``%x0, %x1, ..., %out``, each as ``name = op``; the last op makes the result. An op is
                written without types where all of them are the element type of the result.
        """
        start = result[0]
        made = self.value(start.shape, start.kind)
        scalars = [f"%x{i}: {value.kind}" for i, (value, _) in enumerate(inputs)]
        typed = [line if " : " in line else f"{line} : {start.kind}" for line in body]
        self.region(
            f"%{made.name} = {generic_over(loops.split(', '), [at for _, at in (*inputs, result)], iterators)} "
            f"ins({operands([value for value, _ in inputs])}) outs({operands([start])})",
            ", ".join([*scalars, f"%out: {start.kind}"]),
            [*typed, f"linalg.yield {body[-1].split(' ')[0]} : {start.kind}"],
            f"-> {made.type}",
        )
        return made

    def map(
        self, inputs: Sequence[tuple[Value, str]], body: Sequence[str], *, at: str = "", kind: str = "", loops: str = ""
    ) -> Value:
        """Add an element-wise op; the first input has the shape of the result unless ``at`` permutes its dimensions."""
        first, own = inputs[0]
        loops, at = loops or own, at or own
        extents = dict(zip(own.split(", "), first.shape, strict=True))
        shape = [extents[loop] for loop in at.split(", ")]
        return self.generic(loops, "p" * len(shape), inputs, (self.empty(shape, kind or first.kind), at), body)

    def each(self, body: Sequence[str], first: Value, *others: Value, kind: str = "") -> Value:
        """Add an op on every element of a value; others lie along its last dimensions."""
        loops = [f"d{dim}" for dim in range(len(first.shape))]
        inputs = [(value, ", ".join(loops[len(loops) - len(value.shape) :])) for value in (first, *others)]
        return self.map(inputs, body, kind=kind)

    def contract(self, spec: str, a: Value, b: Value, kind: str = "") -> Value:
        """Add a contraction, e.g. ``b m k, b k n -> b m n``; with another result type the inputs are cast."""
        left, right = spec.split(" -> ")
        one, two = (part.split(" ") for part in left.split(", "))
        out = right.split(" ")
        extents = dict(zip((*one, *two), (*a.shape, *b.shape), strict=True))
        summed = [loop for loop in dict.fromkeys((*one, *two)) if loop not in out]
        kind = kind or a.kind
        body: Sequence[str] = MULTIPLY_ADD
        if kind != a.kind:
            casts = [f"%y{i} = arith.extf %x{i} : {a.kind} to {kind}" for i in (0, 1)]
            body = [*casts, "%p = arith.mulf %y0, %y1", body[1]]
        return self.generic(
            ", ".join((*out, *summed)),
            "p" * len(out) + "r" * len(summed),
            [(a, ", ".join(one)), (b, ", ".join(two))],
            (self.filled([extents[loop] for loop in out], kind), ", ".join(out)),
            body,
        )

    def reduce(self, source: Value, dims: Sequence[int], body: Sequence[str] = SUM, start: float = 0.0) -> Value:
        """Add a reduction over some dimensions of a tensor, by default a sum."""
        loops = [f"d{i}" for i in range(len(source.shape))]
        kept = [i for i in range(len(loops)) if i not in dims]
        result = self.filled([source.shape[i] for i in kept], source.kind, start)
        iterators = "".join("r" if i in dims else "p" for i in range(len(loops)))
        at = ", ".join(loops[i] for i in kept)
        return self.generic(", ".join(loops), iterators, [(source, ", ".join(loops))], (result, at), body)

    def softmax(self, source: Value) -> Value:
        """Add a softmax over the last dimension."""
        start, made = self.empty(source.shape, source.kind), self.value(source.shape, source.kind)
        self.linalg(made, f"softmax dimension({len(source.shape) - 1})", [source], start)
        return made

    def pad(self, source: Value, low: Sequence[int], high: Sequence[int], value: float = 0.0) -> Value:
        """Add a padding with a number."""
        scalar = self.constant(value, source.kind)
        made = self.value([sum(sizes) for sizes in zip(low, source.shape, high, strict=True)], source.kind)
        self.padding(made, source, low, high, scalar)
        return made

    def part(self, source: Value, offsets: Sequence[int], shape: Sequence[int]) -> Value:
        """Add a part of a tensor that begins at offsets."""
        made = self.value(shape, source.kind)
        self.slicing(made, source, offsets, [1] * len(shape))
        return made

    def convolution(
        self,
        op: str,
        image: Value,
        kernel: Value,
        *,
        stride: Sequence[int] = (),
        dilation: Sequence[int] = (),
        padding: Sequence[tuple[int, int]] = (),
        kind: str = "",
        start: float = 0.0,
    ) -> Value:
        """Add a named convolution or pooling.

        Args:
            op: The op's name; the letters of its layout say which dimension is which.
            image, kernel: The op's operands; the kernel of a pooling only gives the size of the windows.
            stride, dilation: One number per spatial dimension of the image, by default 1.
            padding: Padding before and behind the image in each spatial dimension, with the value ``start``.
            kind: Element type of the result, by default that of the image.
            start: Initial value of the accumulators.
        """
        layout, taps = layout_of(op)
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
        shape = _result_shape(op, image, kernel, layout, taps, dict(zip(at, extents, strict=True)))
        return self.named(f"{op} {window_attributes(stride, dilation)}", (image, kernel), shape, kind, start)


def layout_of(op: str) -> tuple[str, str]:
    """Return the letters of the image's and of the filter's dimensions."""
    words = [word for word in op.split("_") if word not in ("conv", "depthwise", "pooling", "1d", "2d", "3d")]
    if op.startswith("pooling"):
        return words[0], "".join(letter for letter in words[0] if letter in "dhw")
    return words[0], words[1]


def _result_shape(
    op: str, image: Value, kernel: Value, layout: str, taps: str, extents: dict[int, int]
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
