"""Operations of random programs that move elements and compute nothing."""

from benchmarks.fuzz.draft import Draft
from benchmarks.mlir_text import Value


def transposed(draft: Draft, value: Value) -> Value | None:
    """Permute the dimensions."""
    if len(value.shape) < 2:
        return None
    return draft.transpose(value, [int(place) for place in draft.rng.permutation(len(value.shape))])


def padded(draft: Draft, value: Value) -> Value | None:
    """Put zeros around the elements."""
    low, high = ([int(width) for width in draft.rng.integers(0, 3, len(value.shape))] for _ in range(2))
    return draft.pad(value, low, high)


def sliced(draft: Draft, value: Value) -> Value | None:
    """Take a part, perhaps every second element."""
    offsets, sizes, strides = list[int](), list[int](), list[int]()
    for size in value.shape:
        stride = draft.any_of([1, 1, 1, 2]) if size > 2 else 1
        offset = int(draft.rng.integers(0, max(1, size // 3)))
        offsets, strides = [*offsets, offset], [*strides, stride]
        sizes.append(max(1, (size - offset - int(draft.rng.integers(0, 2))) // stride))
    return draft.extract_slice(value, offsets, sizes, strides)


def lengthened(draft: Draft, value: Value) -> Value | None:
    """Put a new argument behind the elements, along one dimension."""
    axis = int(draft.rng.integers(len(value.shape)))
    shape = [draft.any_of([1, 3, 8]) if place == axis else size for place, size in enumerate(value.shape)]
    return draft.concat([value, draft.argument(*shape, kind=value.kind)], axis)
