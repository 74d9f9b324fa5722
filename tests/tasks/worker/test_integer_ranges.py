"""The integers that arguments can be: positions in tables stay inside, whatever is computed on the way to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from index_programs import BINARY, WIDTH, Index, indices
from iree.compiler import ir

from mlir_sched.tasks.worker.integers.integer_ranges import USUAL, IntegerRanges, Integers, Range

ROWS = 50
WIDE = (-USUAL, USUAL)


@pytest.fixture(autouse=True, scope="module")
def context() -> Iterator[None]:
    with ir.Context(), ir.Location.unknown():
        yield


def found(text: str, *bits: int | None) -> tuple[tuple[Range | None, ...], tuple[str, ...]]:
    """Return the ranges of the arguments of ``@main`` and the notes on them."""
    module = ir.Module.parse(text)
    (main,) = [op.operation for op in module.body if "@main" in str(op).partition("(")[0]]
    arguments = list(main.regions[0].blocks[0].arguments)
    widths = [*bits, *[None] * (len(arguments) - len(bits))]
    integers = [Integers(a, width, "x" not in str(a.type)) for a, width in zip(arguments, widths, strict=True)]
    return IntegerRanges(module.operation).of(main, integers)


def reading(arguments: str, *lines: str, rows: int = ROWS) -> str:
    """Return a program that reads row %i of a table, where %i is an index that the lines compute."""
    return "\n".join(
        [
            f"util.func public @main({arguments}, %table: tensor<{rows}xf32>) -> f32 {{",
            *lines,
            f"%row = tensor.extract %table[%i] : tensor<{rows}xf32>",
            "util.return %row : f32 }",
        ]
    )


def ranges_of(arguments: str, *lines: str, rows: int = ROWS) -> tuple[Range | None, ...]:
    """Return the ranges of the arguments, all i32, of a program that reads row %i; none of them has a note."""
    ranges, notes = found(reading(arguments, *lines, rows=rows), *[32] * arguments.count("%"))
    assert notes == ()
    return ranges[:-1]


CAST = "%i = arith.index_cast %x : i32 to index"
C4 = "%c = arith.constant 4 : i32"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((CAST.replace("%x", "%a"),), (0, 49)),
        ((C4, "%x = arith.addi %a, %c : i32", CAST), (-4, 45)),
        ((C4, "%x = arith.subi %a, %c : i32", CAST), (4, 53)),
        ((C4, "%x = arith.subi %c, %a : i32", CAST), (-45, 4)),
        ((C4, "%x = arith.muli %a, %c : i32", CAST), (0, 12)),
        ((C4, "%x = arith.shli %a, %c : i32", CAST), (0, 3)),
        ((C4, "%x = arith.shrsi %a, %c : i32", CAST), (0, 799)),
        ((C4, "%x = arith.divsi %a, %c : i32", CAST), (-3, 199)),
        ((C4, "%x = arith.floordivsi %a, %c : i32", CAST), (0, 199)),
        ((C4, "%x = arith.remui %a, %c : i32", CAST), None),
        ((C4, "%x = arith.andi %a, %c : i32", CAST), None),
        ((C4, "%x = arith.remsi %a, %c : i32", CAST), (0, USUAL)),
        ((C4, "%x = arith.minsi %a, %c : i32", CAST), (0, USUAL)),
        ((C4, "%x = arith.maxsi %a, %c : i32", CAST), (-USUAL, 49)),
        (("%n = arith.trunci %a : i32 to i8", "%x = arith.extui %n : i8 to i32", CAST), (0, 49)),
        (("%x = math.absi %a : i32", CAST), (-49, 49)),
    ],
)
def test_ranges_follow_arithmetic(lines: tuple[str, ...], expected: Range | None) -> None:
    assert ranges_of("%a: i32", *lines) == (expected,)


def test_a_negative_index_that_counts_from_the_end_may_be_negative() -> None:
    wrapped = (
        "%rows = arith.constant 50 : i32",
        "%zero = arith.constant 0 : i32",
        "%negative = arith.cmpi slt, %a, %zero : i32",
        "%end = arith.addi %a, %rows : i32",
        "%x = arith.select %negative, %end, %a : i32",
        CAST,
    )
    assert ranges_of("%a: i32", *wrapped) == ((-50, 49),)


def test_an_index_that_is_selected_only_where_it_is_inside_is_free() -> None:
    guarded = (
        "%rows = arith.constant 50 : i32",
        "%zero = arith.constant 0 : i32",
        "%above = arith.cmpi sge, %a, %zero : i32",
        "%below = arith.cmpi slt, %a, %rows : i32",
        "%inside = arith.andi %above, %below : i1",
        "%x = arith.select %inside, %a, %zero : i32",
        CAST,
    )
    assert ranges_of("%a: i32", *guarded) == (None,)


def test_arguments_of_one_index_share_the_table() -> None:
    flat = ("%w = arith.constant 10 : i32", "%line = arith.muli %a, %w : i32", "%x = arith.addi %line, %b : i32", CAST)
    (low_a, high_a), (low_b, high_b) = (each or WIDE for each in ranges_of("%a: i32, %b: i32", *flat))
    assert 10 * low_a + low_b == 0
    assert 39 < 10 * high_a + high_b <= 49
    assert high_a > 0
    assert high_b > 0


def test_none_of_two_arguments_of_a_sum_takes_the_whole_table() -> None:
    first, second = (each or WIDE for each in ranges_of("%a: i32, %b: i32", "%x = arith.addi %a, %b : i32", CAST))
    assert first[0] + second[0] == 0
    assert first[1] + second[1] == ROWS - 1
    assert min(first[1], second[1]) == (ROWS - 1) // 2


def test_an_argument_that_is_an_index_of_two_tables_stays_inside_the_smaller_one() -> None:
    lines = ("%i = arith.index_cast %a : i32 to index", "%r = tensor.extract %t[%i] : tensor<8xf32>")
    ranges, _ = found(reading("%a: i32, %t: tensor<8xf32>", *lines), 32)
    assert ranges == ((0, 7), None, None)


def test_a_divisor_stays_above_zero() -> None:
    text = """util.func public @main(%a: i32, %b: i32) -> i32 {
      %c = arith.constant 3 : i32
      %d = arith.subi %b, %c : i32
      %q = arith.divsi %a, %d : i32
      util.return %q : i32 }"""
    assert found(text, 32, 32) == ((None, (4, USUAL)), ())


@pytest.mark.parametrize(("bits", "expected"), [(8, None), (16, (0, 199))])
def test_bytes_keep_all_their_values_where_the_table_has_as_many_rows(bits: int, expected: Range | None) -> None:
    lines = f"%x = arith.extui %a : i{bits} to i32"
    rows = 256 if bits == 8 else 200
    ranges, _ = found(reading(f"%a: i{bits}", lines, CAST, rows=rows), bits)
    assert ranges[0] == expected


HIDDEN = (
    "%f = arith.sitofp %a : i32 to f32",
    "%h = math.sqrt %f : f32",
    "%x = arith.fptosi %h : f32 to i32",
    CAST,
)


def test_an_argument_that_cannot_be_followed_has_few_values_and_a_note() -> None:
    ranges, notes = found(reading("%a: i32, %b: i32", *HIDDEN), 32, 32)
    assert ranges == ((0, 1), None, None)
    (note,) = notes
    assert note.startswith("argument 0: only 0 to 1 are tried, as its numbers decide a position in tensor<50xf32>")
    assert "arith.fptosi" in note


def test_an_index_that_cannot_be_followed_but_is_clamped_is_free() -> None:
    clamped = (
        "%zero = arith.constant 0 : i32",
        "%last = arith.constant 49 : i32",
        "%any = arith.fptosi %h : f32 to i32",
        "%low = arith.maxsi %any, %zero : i32",
        "%x = arith.minsi %low, %last : i32",
    )
    assert ranges_of("%a: i32", *HIDDEN[:2], *clamped, CAST) == (None,)


def test_a_number_of_steps_that_an_argument_gives_is_small_and_said() -> None:
    text = """util.func public @main(%n: index, %x: f32) -> f32 {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %r = scf.for %i = %zero to %n step %one iter_args(%s = %x) -> f32 {
        %t = arith.addf %s, %x : f32
        scf.yield %t : f32
      }
      util.return %r : f32 }"""
    ranges, notes = found(text, 64)
    assert ranges[0] == (1, 2)
    assert "how often a loop runs" in notes[0]


def test_a_single_number_that_a_loop_compares_lets_the_loop_run_and_end() -> None:
    text = """util.func public @main(%n: i32, %data: tensor<8xi32>, %x: f32) -> f32 {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %at = arith.constant 3 : index
      %fourth = tensor.extract %data[%at] : tensor<8xi32>
      %r:2 = scf.while (%i = %zero, %s = %x) : (i32, f32) -> (i32, f32) {
        %early = arith.cmpi slt, %i, %n : i32
        %other = arith.cmpi ne, %i, %fourth : i32
        %both = arith.andi %early, %other : i1
        scf.condition(%both) %i, %s : i32, f32
      } do {
      ^bb0(%i: i32, %s: f32):
        %j = arith.addi %i, %one : i32
        %t = arith.addf %s, %x : f32
        scf.yield %j, %t : i32, f32
      }
      util.return %r#1 : f32 }"""
    ranges, notes = found(text, 32, 32)
    assert ranges == ((1, 2), None, None), "tensors of several elements are data, and keep their numbers"
    assert [note.partition(":")[0] for note in notes] == ["argument 0"]


def test_a_slice_leaves_room_for_its_size() -> None:
    text = """util.func public @main(%a: index, %t: tensor<50x8xf32>) -> tensor<16x8xf32> {
      %r = flow.tensor.slice %t[%a, %c0 for %c16, %c8] : tensor<50x8xf32> -> tensor<16x8xf32>
      util.return %r : tensor<16x8xf32> }"""
    constants = "".join(f"%c{n} = arith.constant {n} : index\n" for n in (0, 8, 16))
    assert found(text.replace("{\n", "{\n" + constants, 1), 64) == (((0, 34), None), ())


BODY = """util.func public @main(%ids: tensor<8x4xi32>, %table: tensor<1000x64xf32>) -> tensor<8x4x64xf32> {{
  %offsets = {offsets}
  %e = tensor.empty() : tensor<8x4x64xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(b, f, c) -> (b, f)>, affine_map<(b, f, c) -> (f)>,
    affine_map<(b, f, c) -> (b, f, c)>], iterator_types = ["parallel", "parallel", "parallel"]}}
    ins(%ids, %offsets : tensor<8x4xi32>, tensor<4xi32>) outs(%e : tensor<8x4x64xf32>) {{
  ^bb0(%id: i32, %offset: i32, %x: f32):
    %row = arith.addi %id, %offset : i32
    %i = arith.index_cast %row : i32 to index
    %c = linalg.index 2 : index
    %v = tensor.extract %table[%i, %c] : tensor<1000x64xf32>
    linalg.yield %v : f32
  }} -> tensor<8x4x64xf32>
  util.return %r : tensor<8x4x64xf32>
}}"""
DENSE = "dense<[0, 250, 500, 750]> : tensor<4xi32>"


@pytest.mark.parametrize("where", ["constant", "global", "initializer"])
def test_fields_with_offsets_of_their_own_share_one_table(where: str) -> None:
    if where == "constant":
        text = BODY.format(offsets=f"arith.constant {DENSE}")
    else:
        value = f" = {DENSE}" if where == "global" else " : tensor<4xi32>"
        load = "util.global.load immutable @offsets : tensor<4xi32>"
        text = f"util.global private @offsets{value}\n{BODY.format(offsets=load)}"
    if where == "initializer":
        text += f"\nutil.initializer {{ %0 = arith.constant {DENSE}\n"
        text += "util.global.store %0, @offsets : tensor<4xi32>\nutil.return }"
    assert found(text, 32) == (((0, 249), None), ())


@pytest.mark.parametrize(
    ("offset", "expected"), [("dense<[0, 1]> : tensor<2xi4>", (0, 42)), ("dense<7> : tensor<2xi16>", (-7, 42))]
)
def test_constants_of_any_type_are_offsets(offset: str, expected: Range) -> None:
    bits = 4 if "i4" in offset else 16
    lines = (
        "%zero = arith.constant 0 : index",
        f"%all = arith.constant {offset}",
        f"%one = tensor.extract %all[%zero] : tensor<2xi{bits}>",
        f"%o = arith.extsi %one : i{bits} to i32",
        "%x = arith.addi %a, %o : i32",
        CAST,
    )
    (found_range,) = ranges_of("%a: i32", *lines)
    assert found_range is not None
    assert (found_range[0] if bits == 16 else 0, found_range[1]) == expected


def test_a_condition_that_is_turned_around_is_followed() -> None:
    lines = (
        "%zero = arith.constant 0 : i32",
        "%true = arith.constant true",
        "%negative = arith.cmpi slt, %a, %zero : i32",
        "%other = arith.xori %negative, %true : i1",
        "%x = arith.select %other, %a, %zero : i32",
        CAST,
    )
    assert ranges_of("%a: i32", *lines) == ((-USUAL, 49),)


def test_the_elements_that_a_map_makes_are_positions() -> None:
    lines = (
        "%c2 = arith.constant 2 : i32",
        "%zero = arith.constant 0 : index",
        "%t = tensor.splat %a : tensor<4xi32>",
        "%e = tensor.empty() : tensor<4xi32>",
        "%m = linalg.map { arith.muli } ins(%t, %t : tensor<4xi32>, tensor<4xi32>) outs(%e : tensor<4xi32>)",
        "%x = tensor.extract %m[%zero] : tensor<4xi32>",
        CAST,
    )
    assert ranges_of("%a: i32", *lines) == ((0, 7),)


def test_a_value_that_the_program_keeps_makes_the_argument_beside_it_cautious() -> None:
    load = "util.global.load @offsets : tensor<4xi32>"
    text = f"util.global private mutable @offsets = {DENSE}\n{BODY.format(offsets=load)}"
    ranges, notes = found(text, 32)
    assert ranges == ((0, 1), None)
    assert "a value that the program keeps" in notes[0]


CALLED = """
flow.executable private @ex {
  flow.executable.export public @rows workgroups() -> (index, index, index) {
    %c1 = arith.constant 1 : index
    flow.return %c1, %c1, %c1 : index, index, index
  }
  builtin.module {
    func.func @rows(%ids: !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xi32>>, %scale: i32,
        %out: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xi32>>) {
      %0 = iree_tensor_ext.dispatch.tensor.load %ids, offsets = [0], sizes = [4], strides = [1]
        : !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xi32>> -> tensor<4xi32>
      %e = tensor.empty() : tensor<4xi32>
      %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
        iterator_types = ["parallel"]} ins(%0 : tensor<4xi32>) outs(%e : tensor<4xi32>) {
      ^bb0(%id: i32, %o: i32):
        %s = arith.muli %id, %scale : i32
        linalg.yield %s : i32
      } -> tensor<4xi32>
      iree_tensor_ext.dispatch.tensor.store %1, %out, offsets = [0], sizes = [4], strides = [1]
        : tensor<4xi32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xi32>>
      return
    }
  }
}
util.func public @main(%a: tensor<4xi32>, %b: tensor<4xi32>, %table: tensor<100xf32>) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : i32
  %c10 = arith.constant 10 : i32
  %x = flow.dispatch @ex::@rows(%a, %c1) : (tensor<4xi32>, i32) -> tensor<4xi32>
  %y = flow.dispatch @ex::@rows(%b, %c10) : (tensor<4xi32>, i32) -> tensor<4xi32>
  %xs = flow.tensor.load %x[%c0] : tensor<4xi32>
  %ys = flow.tensor.load %y[%c0] : tensor<4xi32>
  %xi = arith.index_cast %xs : i32 to index
  %yi = arith.index_cast %ys : i32 to index
  %p = flow.tensor.load %table[%xi] : tensor<100xf32>
  %q = flow.tensor.load %table[%yi] : tensor<100xf32>
  util.return %p, %q : f32, f32
}
"""


def test_a_dispatch_that_is_called_twice_is_followed_once_per_call() -> None:
    assert found(CALLED, 32, 32) == (((0, 99), (0, 9), None), ())


def test_an_index_of_the_largest_element_is_inside_of_what_it_was_looked_for_in() -> None:
    text = """util.func public @main(%a: i32, %scores: tensor<40xf32>, %table: tensor<ROWSxf32>) -> f32 {
      %zero = arith.constant 0 : i32
      %least = arith.constant 0.0 : f32
      %i0 = tensor.splat %zero : tensor<i32>
      %f0 = tensor.splat %least : tensor<f32>
      %r:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> ()>],
        iterator_types = ["reduction"]} ins(%scores : tensor<40xf32>) outs(%f0, %i0 : tensor<f32>, tensor<i32>) {
      ^bb0(%x: f32, %best: f32, %at: i32):
        %n = linalg.index 0 : index
        %m = arith.index_cast %n : index to i32
        %more = arith.cmpf ogt, %x, %best : f32
        %v = arith.select %more, %x, %best : f32
        %w = arith.select %more, %m, %at : i32
        linalg.yield %v, %w : f32, i32
      } -> (tensor<f32>, tensor<i32>)
      %k = tensor.extract %r#1[] : tensor<i32>
      %s = arith.addi %k, %a : i32
      %i = arith.index_cast %s : i32 to index
      %row = tensor.extract %table[%i] : tensor<ROWSxf32>
      util.return %row : f32 }"""
    assert found(text.replace("ROWS", "45"), 32) == (((0, 5), None, None), ())


def range_of_all(index: Index) -> tuple[list[Range], bool]:
    """Return the ranges of %a and %b in a program that reads a row at an index, and whether they are only cautious."""
    arguments = f"%a: i{WIDTH}, %b: i{WIDTH}"
    text = reading(arguments, *dict.fromkeys(index.lines), f"%i = arith.index_cast {index.name} : i{WIDTH} to index")
    ranges, notes = found(text, WIDTH, WIDTH)
    return [each or WIDE for each in ranges[:2]], bool(notes)


def grid(ranges: list[Range], seed: int) -> Any:
    """Return values of two arguments: the ends of their ranges, and random values between them."""
    rng = np.random.default_rng(seed)
    sides = [np.unique([*r, *rng.integers(*r, 40, endpoint=True)]) for r in ranges]
    return [values.ravel() for values in np.meshgrid(*sides)]


PRODUCT = Index(("%v1 = arith.muli %a, %b : i16",), "%v1", BINARY["arith.muli"])
ONE_EVEN = Index(
    (
        "%v1 = arith.constant -1 : i16",
        "%v2 = arith.constant -2 : i16",
        "%v3 = arith.cmpi eq, %a, %v2 : i16",
        "%v4 = arith.select %v3, %a, %v1 : i16",
        "%v5 = arith.constant 2 : i16",
        "%v6 = arith.remsi %v4, %v5 : i16",
    ),
    "%v6",
    lambda a, _: np.where(a == -2, 0, -1),
)
"""A remainder that is a position for one number alone."""
ONE_BIT_APART = Index(
    ("%v1 = arith.constant 32 : i16", "%v2 = arith.addi %a, %v1 : i16", "%v3 = arith.ori %v2, %b : i16"),
    "%v3",
    lambda a, b: (a + 32) | b,
)
"""A disjunction whose largest value is smaller than all ones of its width."""


@example(index=PRODUCT, seed=0)
@example(index=ONE_EVEN, seed=0)
@example(index=ONE_BIT_APART, seed=0)
@given(index=indices(), seed=st.integers(0, 1000))
@settings(max_examples=150, deadline=None)
def test_a_random_index_never_leaves_the_table_and_its_ranges_are_not_needlessly_narrow(
    index: Index, seed: int
) -> None:
    ranges, cautious = range_of_all(index)
    if cautious:
        with_zero = index.values(np.arange(-200, 200), np.zeros(400, np.int64))
        assert not ((with_zero >= 0) & (with_zero < ROWS)).any()
        return
    values = index.values(*grid(ranges, seed))
    assert values.min() >= 0
    assert values.max() < ROWS
    near = index.values(*grid([(0, 9), (0, 9)], seed))
    if near.min() >= 0 and near.max() < ROWS and all(str(index.lines).count(f"%{name}") <= 1 for name in "ab"):
        assert sum(high - low for low, high in ranges) >= 9
