import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlir_sched.sampling import (
    DISTRIBUTIONS,
    Categorical,
    Distribution,
    IntRange,
    PerfectTile,
    Permutation,
    PowerOfTwo,
    distribution_from_json,
    divisors,
    shared,
)

words = st.lists(st.text("abcdef", min_size=1, max_size=3), min_size=1, max_size=5, unique=True).map(tuple)
weights = st.floats(0.01, 100.0)
perfect_tiles = st.builds(
    PerfectTile,
    extent=st.integers(1, 720),
    levels=st.integers(1, 3),
    max_innermost=st.integers(0, 64),
    multiple_of=st.integers(1, 16),
    max_outermost=st.integers(0, 256),
    power_of_two=st.booleans(),
)
categoricals = st.lists(st.integers(-4, 64), min_size=1, max_size=6, unique=True).flatmap(
    lambda choices: st.builds(
        Categorical,
        st.just(tuple(choices)),
        st.one_of(st.just(()), st.tuples(*[weights] * len(choices))),
    )
)
int_ranges = st.builds(
    lambda low, span, step: IntRange(low, low + span, step),
    st.integers(-9, 9),
    st.integers(0, 20),
    st.integers(1, 5),
)
powers = st.builds(lambda a, b: PowerOfTwo(1 << min(a, b), 1 << max(a, b)), st.integers(0, 9), st.integers(0, 9))
without_equals = st.one_of(
    perfect_tiles, categoricals, words.map(Categorical), int_ranges, powers, words.map(Permutation)
)
orders = st.builds(lambda items, still: Permutation(items, items[:still]), words, st.integers(0, 5))
distributions = st.one_of(without_equals, orders)
foreign_values = st.one_of(
    st.integers(-99, 999), st.text("abc", max_size=2), st.lists(st.integers(0, 99), max_size=3).map(tuple)
)
seeds = st.integers(0, 2**32 - 1)


@given(distributions)
def test_support_is_never_empty_and_has_no_value_twice(distribution: Distribution) -> None:
    support = distribution.support()
    assert support
    assert len(set(support)) == len(support)
    assert all(distribution.contains(value) and distribution.canonical(value) == value for value in support)


@given(without_equals, st.data())
def test_a_value_belongs_to_a_distribution_exactly_when_it_is_in_the_support(
    distribution: Distribution, data: st.DataObject
) -> None:
    support = distribution.support()
    value = data.draw(st.one_of(foreign_values, st.booleans(), st.floats(-9, 9), st.sampled_from(support)))
    assert distribution.contains(value) == any(repr(value) == repr(legal) for legal in support)  # type: ignore[arg-type]
    assert len(support) <= distribution.most_values()


@given(distributions, seeds)
def test_every_draw_is_in_the_support(distribution: Distribution, seed: int) -> None:
    rng = np.random.default_rng(seed)
    assert all(distribution.contains(distribution.sample(rng)) for _ in range(20))


@given(distributions, seeds)
def test_the_same_seed_draws_and_mutates_the_same(distribution: Distribution, seed: int) -> None:
    def draws() -> list[object]:
        rng = np.random.default_rng(seed)
        return [(value := distribution.sample(rng), distribution.mutate(value, rng)) for _ in range(5)]

    assert draws() == draws()


@given(distributions, seeds)
def test_a_mutation_is_another_value_of_the_support(distribution: Distribution, seed: int) -> None:
    rng = np.random.default_rng(seed)
    value = distribution.sample(rng)
    mutated = distribution.mutate(value, rng)
    if len(distribution.support()) == 1:
        assert mutated is None
    else:
        assert mutated is not None
        assert mutated != value
        assert distribution.contains(mutated)


@given(distributions, foreign_values)
def test_a_repair_is_a_nearest_value_of_the_support(distribution: Distribution, value: int | str) -> None:
    repaired = distribution.repair(value)
    distances = [distribution.distance(value, legal) for legal in distribution.support()]
    if repaired is None:
        assert all(map(math.isinf, distances))
    else:
        assert distribution.contains(repaired)
        assert distribution.distance(value, repaired) == min(distances)


@given(distributions)
def test_repair_keeps_what_is_legal(distribution: Distribution) -> None:
    assert all(distribution.repair(value) == value for value in distribution.support()[:50])


@given(distributions)
def test_distance_is_zero_to_itself_and_symmetric(distribution: Distribution) -> None:
    for first, second in itertools.combinations(distribution.support()[:8], 2):
        assert distribution.distance(first, first) == 0
        assert distribution.distance(first, second) == pytest.approx(distribution.distance(second, first))


@given(distributions)
def test_json_gives_the_distribution_back(distribution: Distribution) -> None:
    assert distribution_from_json(distribution.to_json()) == distribution


@given(perfect_tiles)
def test_perfect_tile_sizes_divide_outside_in_and_keep_their_bounds(tile: PerfectTile) -> None:
    for value in tile.support():
        assert isinstance(value, tuple)
        sizes = [int(size) for size in value]
        assert len(sizes) == tile.levels
        assert all(outer % inner == 0 for outer, inner in itertools.pairwise([tile.extent, *sizes]))
        assert not tile.max_innermost or sizes[-1] <= tile.max_innermost
        assert not tile.max_outermost or sizes[0] <= tile.max_outermost


@given(perfect_tiles)
def test_perfect_tile_is_a_multiple_when_a_divisor_within_the_bounds_is(tile: PerfectTile) -> None:
    cap = min(tile.max_innermost or tile.extent, tile.max_outermost or tile.extent)
    fitting = [d for d in divisors(tile.extent) if not tile.power_of_two or d.bit_count() == 1]
    possible = any(d % tile.multiple_of == 0 and d <= cap for d in fitting)
    if possible:
        assert all(isinstance(v, tuple) and int(v[-1]) % tile.multiple_of == 0 for v in tile.support())


def test_perfect_tile_innermost_size_may_be_held_to_powers_of_two() -> None:
    tile = PerfectTile(96, 2, multiple_of=16, power_of_two=True)
    assert {value[-1] for value in tile.support()} == {16, 32}  # type: ignore[index]
    assert PerfectTile(75, 1, power_of_two=True).support() == ((1,),)


def test_perfect_tile_draws_by_the_powers_of_its_sizes() -> None:
    tile = PerfectTile(4, 2, size_powers=(0.0, 2.0))
    assert dict(zip(tile.support(), tile.weights() or (), strict=True)) == {
        (1, 1): 1.0, (2, 1): 1.0, (2, 2): 4.0, (4, 1): 1.0, (4, 2): 4.0, (4, 4): 16.0
    }  # fmt: skip
    rng = np.random.default_rng(0)
    drawn = [tile.sample(rng) for _ in range(2700)]
    assert drawn.count((4, 4)) == pytest.approx(1600, rel=0.1)
    assert distribution_from_json(tile.to_json()) == tile
    with pytest.raises(ValueError, match="one power per level"):
        PerfectTile(4, 2, size_powers=(1.0,))


def test_perfect_tile_support_is_complete() -> None:
    tile = PerfectTile(24, 2, max_innermost=6, multiple_of=2, max_outermost=12)
    expected = {
        (outer, inner)
        for outer in range(1, 13)
        for inner in range(1, 7)
        if 24 % outer == 0 and outer % inner == 0 and inner % 2 == 0
    }
    assert set(tile.support()) == expected


@given(st.integers(1, 5000))
def test_divisors_are_all_and_ascending(number: int) -> None:
    assert divisors(number) == tuple(d for d in range(1, number + 1) if number % d == 0)


def test_draws_follow_the_weights() -> None:
    distribution = Categorical(("often", "rarely"), (9.0, 1.0))
    rng = np.random.default_rng(0)
    share = sum(distribution.sample(rng) == "often" for _ in range(5000)) / 5000
    assert share == pytest.approx(0.9, abs=0.02)


def test_draws_without_weights_are_uniform() -> None:
    distribution = PerfectTile(64, 2)
    rng = np.random.default_rng(0)
    counts = dict.fromkeys(distribution.support(), 0)
    for _ in range(28000):
        counts[distribution.sample(rng)] += 1
    assert min(counts.values()) > 850
    assert max(counts.values()) < 1150


def test_mutations_are_mostly_near_and_reach_every_value() -> None:
    distribution = PowerOfTwo(1, 256)
    rng = np.random.default_rng(0)
    values = [distribution.mutate(16, rng) for _ in range(4000)]
    assert set(values) == set(distribution.support()) - {16}
    assert sum(value in (8, 32) for value in values) > len(values) / 2


@pytest.mark.parametrize(
    "data",
    [
        {"kind": "unheard_of"},
        {},
        {"kind": "perfect_tile", "extent": 8},
        {"kind": "perfect_tile", "extent": 8, "levels": 1, "colour": 1},
        {"kind": "perfect_tile", "extent": 0, "levels": 1},
        {"kind": "perfect_tile", "extent": "8", "levels": 1},
        {"kind": "power_of_two", "low": 3, "high": 8},
        {"kind": "int_range", "low": 3, "high": 2},
        {"kind": "categorical", "choices": []},
        {"kind": "categorical", "choices": [1, 1]},
        {"kind": "categorical", "choices": [1, 2], "choice_weights": [1.0]},
        {"kind": "permutation", "items": list("abcdefgh")},
        {"kind": "categorical", "choices": 5},
        {"kind": "permutation", "items": [["a"], ["b"]]},
        {"kind": "permutation", "items": ["a", "b"], "still": ["c"]},
        {"kind": "permutation", "items": ["a", "b"], "still": ["a", "a"]},
    ],
)
def test_a_wrong_description_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        distribution_from_json(data)


def test_every_primitive_is_registered_under_its_kind() -> None:
    assert all(cls.kind == kind for kind, cls in DISTRIBUTIONS.items())
    assert set(DISTRIBUTIONS.values()) == set(Distribution.__subclasses__())


def test_equal_fields_share_one_distribution_but_true_is_not_one() -> None:
    assert shared(PerfectTile, 64, 2) is shared(PerfectTile, 64, 2)
    assert shared(PerfectTile, 64, 2) == PerfectTile(64, 2)
    assert repr(shared(PerfectTile, 8, 1, 0, 1, 0, True)) != repr(shared(PerfectTile, 8, 1, 0, 1, 0, 1))
    with pytest.raises(ValueError, match="low <= high"):
        shared(IntRange, 2, 1)


@pytest.mark.parametrize(
    "data",
    [
        {"kind": "perfect_tile", "extent": 10**17 + 3, "levels": 1},
        {"kind": "perfect_tile", "extent": 1, "levels": 10**9},
        {"kind": "perfect_tile", "extent": 2**30, "levels": 12},
        {"kind": "perfect_tile", "extent": 64.0, "levels": 1},
        {"kind": "perfect_tile", "extent": 64, "levels": 1, "power_of_two": 2},
        {"kind": "perfect_tile", "extent": 64, "levels": 1, "size_powers": [math.nan]},
        {"kind": "int_range", "low": 0, "high": 10**12},
        {"kind": "int_range", "low": 0, "high": True},
        {"kind": "categorical", "choices": list(range(1_000_001))},
        {"kind": "categorical", "choices": [1, "a"]},
        {"kind": "categorical", "choices": [[1], [2]]},
        {"kind": "categorical", "choices": [1, 2], "choice_weights": [1.0, math.inf]},
        {"kind": "categorical", "choices": [10**400, 2]},
        {"kind": "power_of_two", "low": 1, "high": 1 << 10**5},
        {"kind": "permutation", "items": "abc"},
    ],
)
def test_a_distribution_that_is_too_large_or_of_other_types_is_refused_at_once(data: dict[str, object]) -> None:
    start = time.process_time()
    with pytest.raises(ValueError):  # noqa: PT011
        distribution_from_json(data)
    assert time.process_time() - start < 0.5


def test_large_extents_of_real_tensors_are_read() -> None:
    for extent in (2**31, 2**32 - 5, 720720):
        assert distribution_from_json({"kind": "perfect_tile", "extent": extent, "levels": 3}).contains((1, 1, 1))


@given(distributions)
def test_the_mode_is_no_less_likely_than_any_other_value(distribution: Distribution) -> None:
    chances = dict(zip(distribution.support(), distribution.weights() or itertools.repeat(1.0), strict=False))
    assert chances[distribution.mode()] == max(chances.values())


def test_of_equally_likely_values_the_mode_is_the_largest_size_and_the_first_word() -> None:
    assert PerfectTile(48, 2).mode() == (48, 48)
    assert PerfectTile(48, 2, max_innermost=20, size_powers=(1.0, 0.0)).mode() == (48, 16)
    assert PerfectTile(48, 1, size_powers=(-1.0,)).mode() == (1,)
    assert Categorical(("a", "b")).mode() == "a"
    assert Categorical(("a", "b", "c"), (1.0, 3.0, 3.0)).mode() == "b"
    assert Permutation(("m", "n")).mode() == ("m", "n")


@given(orders, st.data())
def test_orders_that_differ_in_still_items_alone_are_equal(order: Permutation, data: st.DataObject) -> None:
    value = data.draw(st.permutations(order.items).map(tuple))
    moving = [item for item in value if item not in order.still]
    assert order.contains(value)
    assert order.canonical(value) == (*order.still, *moving)
    assert order.canonical(value) in order.support()
    assert [order.distance(value, other) == 0 for other in order.support()].count(True) == 1
    mutated = order.mutate(value, np.random.default_rng(0))
    assert (mutated is None) == (len(moving) < 2)
    assert mutated != order.canonical(value)


def test_still_items_take_no_part_in_the_draw() -> None:
    order = Permutation(("m", "n", "k"), still=("n",))
    assert order.support() == (("n", "m", "k"), ("n", "k", "m"))
    assert Permutation(("m", "n"), still=("m", "n")).support() == (("m", "n"),)
    assert order.to_json() == {"kind": "permutation", "items": ["m", "n", "k"], "still": ["n"]}
    assert "still" not in Permutation(("m", "n")).to_json(), "written as ever"
