"""The choice of layouts on plain data: where channels are, and where the least is copied."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import chain, combinations

import pytest

from mlir_sched.program.rewrites.layout.channel_dims import (
    Form,
    Op,
    Program,
    Value,
    channel_dims,
    holds,
    order_of,
    reshaped_groups,
)
from mlir_sched.program.rewrites.layout.choice import choose
from mlir_sched.program.rewrites.layout.minimum_cut import Edge, sink_side

IMAGE, PLANE = (1, 8, 5, 7), (0, 1, 2, 3)


class Building:
    """Ops one after the other, each with a key of its own unless one is given."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.ops: list[Op] = []

    def value(self, shape: Sequence[int] = IMAGE, size: int = 100) -> int:
        self.values.append(Value(tuple(shape), size))
        return len(self.values) - 1

    def op(
        self,
        form: Form | None,
        reads: Sequence[int],
        axes: Sequence[Sequence[int | None]],
        shape: Sequence[int] = IMAGE,
        size: int = 100,
        key: str = "",
        channels: Sequence[int] = (),
    ) -> int:
        """Append an op with one result, and return the result."""
        result = self.value(shape, size)
        named = key or f"op {len(self.ops)}"
        tied = tuple(map(tuple, axes))
        self.ops.append(Op((*reads, result), len(reads), tied, form, frozenset(channels), named, named))
        return result

    def window(self, image: int, shape: Sequence[int] = IMAGE, key: str = "") -> int:
        return self.op(Form.SAME, [image], [PLANE, PLANE], shape, key=key, channels=[1])

    def same(self, *images: int, key: str = "", size: int = 100) -> int:
        return self.op(Form.ANY, images, [PLANE] * (len(images) + 1), size=size, key=key)

    def border(self, *values: int) -> int:
        """Append an op that knows the model's layout alone."""
        shapes = [self.values[value].shape for value in values]
        return self.op(None, values, [[None] * len(shape) for shape in (*shapes, IMAGE)])

    @property
    def program(self) -> Program:
        return Program(tuple(self.values), tuple(self.ops))


def test_channels_are_last_in_memory_and_all_other_dims_as_they_were() -> None:
    assert order_of(4, frozenset({1})) == (0, 2, 3, 1)
    assert order_of(5, frozenset({1, 2})) == (0, 3, 4, 1, 2)
    assert order_of(2, frozenset({1})) == (0, 1)


def test_a_channel_shuffle_splits_permutes_and_joins_channels() -> None:
    built = Building()
    image = built.window(built.value())
    parts = built.op(Form.GROUPED, [image], [PLANE, (0, 1, 1, 2, 3)], (1, 2, 4, 5, 7))
    turned = built.op(Form.ANY, [parts], [(0, 1, 2, 3, 4), (0, 2, 1, 3, 4)], (1, 4, 2, 5, 7))
    joined = built.op(Form.GROUPED, [turned], [(0, 1, 1, 2, 3), PLANE])
    built.border(joined)
    known = channel_dims(built.program)
    assert [sorted(known[value]) for value in (image, parts, turned, joined)] == [[1], [1, 2], [1, 2], [1]]
    assert all(holds(built.program, op, known) for op in built.program.ops[:-1])
    assert choose(built.program).copied.keys() == {0, joined}, "image and result alone"


def test_pixels_that_become_tokens_have_their_channels_last() -> None:
    built = Building()
    image = built.window(built.value())
    flat = built.op(Form.GROUPED, [image], [(0, 1, 2, 2), (0, 1, 2)], (1, 8, 35))
    tokens = built.op(Form.ANY, [flat], [(0, 1, 2), (0, 2, 1)], (1, 35, 8))
    built.border(tokens)
    known = channel_dims(built.program)
    assert sorted(known[tokens]) == [2]
    assert choose(built.program).copied.keys() == {0}, "tokens are channels last in the model"


def test_channels_joined_with_pixels_stay_in_the_models_layout() -> None:
    built = Building()
    image = built.window(built.value())
    flat = built.op(Form.GROUPED, [image], [(0, 1, 1, 1), (0, 1)], (1, 280))
    built.border(flat)
    assert flat not in channel_dims(built.program)
    assert choose(built.program).copied.keys() == {0, image}


def test_dims_of_size_one_move_for_nothing() -> None:
    built = Building()
    image = built.window(built.value((1, 8, 1, 1)), (1, 8, 1, 1))
    flat = built.op(Form.GROUPED, [image], [(0, 1, 1, 1), (0, 1)], (1, 8))
    built.border(flat)
    choice = choose(built.program)
    assert not choice.copied
    assert len(choice.last) == 2
    assert reshaped_groups((1, 8, 1, 1), (1, 8), ((0, 1, 1, 1), (0, 1)), [(0, 2, 3, 1), (0, 1)]) == [[0], [1, 2, 3]]


def test_ops_that_disagree_keep_the_layout_of_what_is_nearest() -> None:
    built = Building()
    image = built.window(built.value((1, 8, 5, 5)), (1, 8, 5, 5))
    turned = built.op(Form.ANY, [image], [PLANE, (0, 2, 1, 3)], (1, 5, 8, 5))
    both = built.op(Form.ANY, [image, turned], [PLANE, PLANE, PLANE], (1, 8, 5, 5))
    known = channel_dims(built.program)
    assert known[image] == {1}
    assert known[turned] == {2}
    assert both not in known
    assert not holds(built.program, built.program.ops[-1], known)


def test_the_smaller_of_two_values_is_copied() -> None:
    built = Building()
    image = built.window(built.value(size=0))
    large = built.same(image, size=1000)
    small = built.same(large, size=10)
    built.border(built.same(small, size=500))
    assert choose(built.program).copied == {small: 10}


def test_a_copy_serves_all_readers() -> None:
    built = Building()
    image = built.window(built.value(size=0))
    for _ in range(3):
        built.border(image)
    assert sum(choose(built.program).copied.values()) == 100
    built = Building()
    first = built.border()
    for _ in range(3):
        built.window(first)
    assert sum(choose(built.program).copied.values()) == 100


def test_ops_that_a_script_does_not_tell_apart_have_one_layout() -> None:
    built = Building()
    image = built.window(built.value(size=0))
    built.same(image, key="twin")
    built.op(Form.ANY, [built.border()], [(0, None, None, None), PLANE], key="twin")
    assert "twin" not in choose(built.program).last


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
    choice = choose(program)
    free = [op.key for op in program.ops if holds(program, op, choice.channels) and not op.channels]
    fixed = {op.key for op in program.ops if op.channels}
    best = min(_copied(program, fixed | {*some}) for some in _subsets(free))
    assert sum(choice.copied.values()) == _copied(program, set(choice.last)) == best


def _subsets(keys: Sequence[object]) -> Iterator[tuple[object, ...]]:
    return chain.from_iterable(combinations(keys, size) for size in range(len(keys) + 1))


def _copied(program: Program, last: set[object]) -> int:
    """Return the bytes of all copies, counted op by op."""
    made = {value: op.key in last for op in program.ops for value in op.values[op.reads :]}
    wrong = {
        value for op in program.ops for value in op.values[: op.reads] if made.get(value, False) != (op.key in last)
    }
    known = channel_dims(program)
    return sum(program.values[value].bytes for value in wrong if value in known)


def test_a_cut_takes_the_cheapest_edges() -> None:
    edges: list[Edge] = [("s", "a", 3), ("s", "b", 9), ("a", "t", 9), ("b", "t", 2), ("a", "b", 1), ("s", "far", 1)]
    assert sink_side(edges, "s", "t") == {"a", "t"}
