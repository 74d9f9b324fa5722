"""The choice of layouts on plain data: where channels are, and where the least is copied."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator, Sequence, Set
from itertools import chain, combinations

import pytest

from mlir_sched.program.rewrites.layout.channel_dims import (
    Op,
    Program,
    Value,
    channel_dims,
    moved_bytes,
    order_of,
    orders_last,
    reshaped_groups,
)
from mlir_sched.program.rewrites.layout.choice import Edge, choose, sink_side

IMAGE, PLANE = (1, 8, 5, 7), (0, 1, 2, 3)


class Building:
    """Ops one after the other."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.ops: list[Op] = []

    def value(self, shape: Sequence[int] = IMAGE, size: int = 100) -> int:
        self.values.append(Value(tuple(shape), size))
        return len(self.values) - 1

    def op(
        self,
        reads: Sequence[int],
        axes: Sequence[Sequence[int | None]],
        shape: Sequence[int] = IMAGE,
        size: int = 100,
        channels: Sequence[int] = (),
        *,
        reshapes: bool = False,
    ) -> int:
        """Append an op with one result, and return the result; no axes for one that knows the model's layout alone."""
        result = self.value(shape, size)
        tied = tuple(zip((*reads, result), map(tuple, axes), strict=True)) if axes else ()
        self.ops.append(Op(tuple(reads), (result,), tied, frozenset(channels), reshapes))
        return result

    def reshape(self, source: int, axes: Sequence[Sequence[int | None]], shape: Sequence[int] = IMAGE) -> int:
        return self.op([source], axes, shape, reshapes=True)

    def window(self, image: int, shape: Sequence[int] = IMAGE) -> int:
        return self.op([image], [PLANE, PLANE], shape, channels=[1])

    def same(self, *images: int, size: int = 100) -> int:
        return self.op(images, [PLANE] * (len(images) + 1), size=size)

    def border(self, *values: int) -> int:
        """Append an op that knows the model's layout alone."""
        return self.op(values, [])

    @property
    def program(self) -> Program:
        return Program(dict[Hashable, Value](enumerate(self.values)), dict[Hashable, Op](enumerate(self.ops)))

    @property
    def copied(self) -> dict[Hashable, int]:
        """The values that are copied into the other layout where the least is, with the bytes of each."""
        return copied(self.program, choose(self.program).keys())


def copied(program: Program, last: Set[Hashable]) -> dict[Hashable, int]:
    """Return the values that are copied where some ops are computed channels last, with the bytes of each."""
    made = {value: key in last for key, op in program.ops.items() for value in op.makes}
    wrong = [v for key, op in program.ops.items() for v in op.reads if made.get(v, False) != (key in last)]
    known = channel_dims(program)
    sizes = {v: moved_bytes(program.values[v], known[v]) for v in wrong if v in known}
    return {v: size for v, size in sizes.items() if size}


def test_channels_are_last_in_memory_and_all_other_dims_as_they_were() -> None:
    assert order_of(4, frozenset({1})) == (0, 2, 3, 1)
    assert order_of(5, frozenset({1, 2})) == (0, 3, 4, 1, 2)
    assert order_of(2, frozenset({1})) == (0, 1)


def test_a_channel_shuffle_splits_permutes_and_joins_channels() -> None:
    built = Building()
    image = built.window(built.value())
    parts = built.reshape(image, [PLANE, (0, 1, 1, 2, 3)], (1, 2, 4, 5, 7))
    turned = built.op([parts], [(0, 1, 2, 3, 4), (0, 2, 1, 3, 4)], (1, 4, 2, 5, 7))
    joined = built.reshape(turned, [(0, 1, 1, 2, 3), PLANE])
    built.border(joined)
    known = channel_dims(built.program)
    assert [sorted(known[value]) for value in (image, parts, turned, joined)] == [[1], [1, 2], [1, 2], [1]]
    assert all(orders_last(built.program, op, known) for op in built.ops[:-1])
    assert built.copied.keys() == {0, joined}, "image and result alone"


def test_pixels_that_become_tokens_have_their_channels_last() -> None:
    built = Building()
    image = built.window(built.value())
    flat = built.reshape(image, [(0, 1, 2, 2), (0, 1, 2)], (1, 8, 35))
    tokens = built.op([flat], [(0, 1, 2), (0, 2, 1)], (1, 35, 8))
    built.border(tokens)
    known = channel_dims(built.program)
    assert sorted(known[tokens]) == [2]
    assert built.copied.keys() == {0}, "tokens are channels last in the model"


def test_channels_joined_with_pixels_stay_in_the_models_layout() -> None:
    built = Building()
    image = built.window(built.value())
    flat = built.reshape(image, [(0, 1, 1, 1), (0, 1)], (1, 280))
    built.border(flat)
    assert flat not in channel_dims(built.program)
    assert built.copied.keys() == {0, image}


def test_dims_of_size_one_move_for_nothing() -> None:
    built = Building()
    image = built.window(built.value((1, 8, 1, 1)), (1, 8, 1, 1))
    flat = built.reshape(image, [(0, 1, 1, 1), (0, 1)], (1, 8))
    built.border(flat)
    assert not built.copied
    assert len(choose(built.program)) == 2
    assert reshaped_groups([(1, 8, 1, 1), (1, 8)], ((0, 1, 1, 1), (0, 1)), [(0, 2, 3, 1), (0, 1)]) == [[0], [1, 2, 3]]


def test_ops_that_disagree_keep_the_layout_of_what_is_nearest() -> None:
    built = Building()
    image = built.window(built.value((1, 8, 5, 5)), (1, 8, 5, 5))
    turned = built.op([image], [PLANE, (0, 2, 1, 3)], (1, 5, 8, 5))
    both = built.op([image, turned], [PLANE, PLANE, PLANE], (1, 8, 5, 5))
    known = channel_dims(built.program)
    assert known[image] == {1}
    assert known[turned] == {2}
    assert both not in known
    assert not orders_last(built.program, built.ops[-1], known)


def test_the_smaller_of_two_values_is_copied() -> None:
    built = Building()
    image = built.window(built.value(size=0))
    large = built.same(image, size=1000)
    small = built.same(large, size=10)
    built.border(built.same(small, size=500))
    assert built.copied == {small: 10}


def test_a_copy_serves_all_readers() -> None:
    built = Building()
    image = built.window(built.value(size=0))
    for _ in range(3):
        built.border(image)
    assert sum(built.copied.values()) == 100
    built = Building()
    first = built.border()
    for _ in range(3):
        built.window(first)
    assert sum(built.copied.values()) == 100


@pytest.mark.parametrize("seed", range(20))
def test_no_choice_copies_less(seed: int) -> None:
    drawn, built = random.Random(seed), Building()
    values = [built.value(size=drawn.randrange(1, 9))]
    for _ in range(9):
        reads = drawn.choices(values, k=drawn.randrange(1, 3))
        kind = drawn.choice(["same", "same", "same", "border", "window"])
        values.append(built.window(reads[0]) if kind == "window" else getattr(built, kind)(*reads))
    built.border(*drawn.choices(values, k=2))
    program = built.program
    known, last = channel_dims(program), choose(program).keys()
    free = [key for key, op in program.ops.items() if orders_last(program, op, known) and not op.channels]
    fixed = {key for key, op in program.ops.items() if op.channels}
    best = min(sum(copied(program, fixed | {*some}).values()) for some in _subsets(free))
    assert sum(copied(program, last).values()) == best


def _subsets(keys: Sequence[Hashable]) -> Iterator[tuple[Hashable, ...]]:
    return chain.from_iterable(combinations(keys, size) for size in range(len(keys) + 1))


def test_a_cut_takes_the_cheapest_edges() -> None:
    edges: list[Edge] = [("s", "a", 3), ("s", "b", 9), ("a", "t", 9), ("b", "t", 2), ("a", "b", 1), ("s", "far", 1)]
    assert sink_side(edges, "s", "t") == {"a", "t"}
