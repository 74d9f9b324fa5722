"""Operations of random programs that move elements and compute nothing."""

from __future__ import annotations

import numpy as np

from benchmarks.fuzz.draft import Draft, Value


def transposed(draft: Draft, value: Value) -> Value | None:
    """Permute the dimensions."""
    if len(value.shape) < 2:
        return None
    order = [int(place) for place in draft.rng.permutation(len(value.shape))]
    empty = draft.empty([value.shape[place] for place in order], value.kind)
    made = draft.made(empty.shape, value.kind, lambda x: x.transpose(order), value)
    draft.line(
        f"%{made.name} = linalg.transpose ins(%{value.name} : {value.type}) outs(%{empty.name} : {empty.type}) "
        f"permutation = {order}"
    )
    return made


def padded(draft: Draft, value: Value) -> Value | None:
    """Put zeros around the elements."""
    low = [int(width) for width in draft.rng.integers(0, 3, len(value.shape))]
    high = [int(width) for width in draft.rng.integers(0, 3, len(value.shape))]
    shape = [size + below + above for size, below, above in zip(value.shape, low, high, strict=True)]
    zero = draft.constant(0, value.kind)
    made = draft.made(shape, value.kind, lambda x: np.pad(x, [*zip(low, high, strict=True)]), value)
    indices = ", ".join(f"%i{position}: index" for position in range(len(shape)))
    draft.line(
        f"%{made.name} = tensor.pad %{value.name} low{low} high{high} {{ ^bb0({indices}): "
        f"tensor.yield %{zero} : {value.kind} }} : {value.type} to {made.type}"
    )
    return made


def sliced(draft: Draft, value: Value) -> Value | None:
    """Take a part, perhaps every second element."""
    offsets, sizes, strides = list[int](), list[int](), list[int]()
    for size in value.shape:
        stride = draft.any_of([1, 1, 1, 2]) if size > 2 else 1
        offset = int(draft.rng.integers(0, max(1, size // 3)))
        offsets, strides = [*offsets, offset], [*strides, stride]
        sizes.append(max(1, (size - offset - int(draft.rng.integers(0, 2))) // stride))
    places = tuple(
        slice(offset, offset + (size - 1) * stride + 1, stride)
        for offset, size, stride in zip(offsets, sizes, strides, strict=True)
    )
    made = draft.made(sizes, value.kind, lambda x: x[places], value)
    draft.line(
        f"%{made.name} = tensor.extract_slice %{value.name}{offsets}{sizes}{strides} : {value.type} to {made.type}"
    )
    return made


def lengthened(draft: Draft, value: Value) -> Value | None:
    """Put a new argument behind the elements, along one dimension."""
    axis = int(draft.rng.integers(len(value.shape)))
    shape = [draft.any_of([1, 3, 8]) if place == axis else size for place, size in enumerate(value.shape)]
    other = draft.argument(shape, value.kind)
    together = [size + (shape[place] if place == axis else 0) for place, size in enumerate(value.shape)]
    made = draft.made(together, value.kind, lambda x, y: np.concatenate([x, y], axis), value, other)
    draft.line(
        f"%{made.name} = tensor.concat dim({axis}) %{value.name}, %{other.name} : "
        f"({value.type}, {other.type}) -> {made.type}"
    )
    return made
