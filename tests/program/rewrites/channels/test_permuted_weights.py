"""Channels that are permuted between linear ops: the same results from permuted weights, and what is left alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from channels_first_networks import function, layer
from iree.compiler import ir
from iree_cases import FLAGS
from permuted_channels import (
    ENDS,
    IMAGE,
    PIXELS,
    by_indices,
    ending,
    interleaving,
    joined,
    pointwise,
    selected,
    sliced,
)
from rewriting import assert_refused, assert_same_results, compiled_to, left_out, library_for, run, write
from scaled_channels import as_argument, as_parameters, read_again

from mlir_sched.compiler import compile_to_bytes
from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.program.rewrites import pipeline
from mlir_sched.program.rewrites.channels import moves, permuted_weights
from mlir_sched.program.rewrites.channels.finding import permuted_reads
from mlir_sched.program.rewrites.channels.gathers import Gather, gather
from mlir_sched.program.rewrites.channels.order import Numbers
from mlir_sched.program.rewrites.channels.permuted_read import PermutedRead
from mlir_sched.program.rewrites.channels.permuted_weights import PermutedWeights
from mlir_sched.program.rewrites.layout.channels_last import ChannelsLast
from mlir_sched.program.rewrites.linalg_ops import gathered
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.walked_program import CPU, GPU, WalkedProgram
from mlir_sched.targets.target import Target
from mlir_sched.testing import RewriteTests
from mlir_sched.transform_scripts.script.building import new_library
from mlir_sched.transform_scripts.script.form import script_context

BLOCKS = 2


@contextmanager
def found(text: str) -> Iterator[list[PermutedRead]]:
    """Give the linear ops of a program that read permuted channels."""
    with script_context(), ir.Location.unknown():
        program = WalkedProgram(ir.Module.parse(text))
        yield permuted_reads(program)


@pytest.mark.parametrize("shuffled", [str, by_indices], ids=["transposed", "gathered"])
@pytest.mark.parametrize("end", ENDS)
def test_every_linear_op_reads_runs_of_channels(end: str, shuffled: Callable[[str], str]) -> None:
    with found(shuffled(ending(end))) as sites:
        assert len(sites) == BLOCKS + (2 if end == "two branches" else 1)
        sizes = [[run.size for run in site.runs] for site in sites]
        assert sizes[:2] == [[8, 8], [4, 4, 8]]
        assert sizes[2:] == [[2, 2, 4, 8] * 2 if "groups" in end else [4, 4, 8, 16]] * (len(sites) - BLOCKS)


PRODUCT, DEPTHWISE = ending("a product"), ending("a padded depthwise convolution")
GATHERED = by_indices(PRODUCT)


LARGE = {"16x20": "1600x2000", "18x22": "1602x2002", "16, 20": "1600, 2000"}


@pytest.mark.parametrize(("device", "large", "sites"), [(CPU, False, 3), (GPU, False, 0), (GPU, True, 3)])
def test_on_gpus_further_copies_have_to_free_more_of_transpositions(device: str, large: bool, sites: int) -> None:
    text = PRODUCT
    for size, larger in LARGE.items() if large else ():
        text = text.replace(size, larger)
    with script_context(), ir.Location.unknown():
        assert len(permuted_reads(WalkedProgram(ir.Module.parse(text), device))) == sites


def convolution(channels: int) -> str:
    """Return a convolution that makes channels, ``%out90``."""
    return layer(90, "conv_2d_nchw_fchw", "%image", (IMAGE, f"{channels}x4x3x3", f"1x{channels}x{PIXELS}"), 1)


def picked(places: Sequence[int], channels: int = 32, dim: int = 1) -> str:
    """Return a program that reads channels, or rows, by indices."""
    read = len(places) if dim == 1 else channels
    text = convolution(channels) + selected(0, "%out90", channels, places, dim) + pointwise(80, "%shuffled0", read, 8)
    return function(IMAGE, text, "%out80", f"1x8x{PIXELS}")


AT = "%at = arith.index_cast %index : i64 to index"
FROM_END = """%zero = arith.constant 0 : i64
    %size = arith.constant 32 : i64
    %below = arith.cmpi slt, %index, %zero : i64
    %from_end = arith.addi %index, %size : i64
    %in = arith.select %below, %from_end, %index : i64
    %at = arith.index_cast %in : i64 to index"""
REVERSED = """%last = arith.constant 31 : index
    %loop1 = linalg.index 1 : index
    %at = arith.subi %last, %loop1 : index"""
NARROW = """%narrow = arith.trunci %index : i64 to i8
    %much = arith.constant 120 : i8
    %once = arith.addi %narrow, %much : i8
    %twice = arith.addi %once, %much : i8
    %wide = arith.extsi %twice : i8 to i64
    %lost = arith.constant 16 : i64
    %in = arith.addi %wide, %lost : i64
    %at = arith.index_cast %in : i64 to index"""
PICKED = {
    "in another order": (picked(interleaving(32)), [(0, 0, 32)]),
    "counted from the end": (picked([place - 32 for place in interleaving(32)]).replace(AT, FROM_END), [(0, 0, 32)]),
    "computed from the loop": (picked([0] * 32).replace(AT, REVERSED), [(0, 0, 32)]),
    "sums that a narrow type does not hold": (picked(interleaving(32)).replace(AT, NARROW), [(0, 0, 32)]),
    "some of them": (picked([*range(31, 15, -1)]), [(0, 16, 16)]),
    "some of them twice": (picked([*range(32), *range(8, 24)]), [(0, 0, 32), (0, 8, 16)]),
}


def as_resource(text: str) -> str:
    """Return a program whose indices stand behind its text."""
    (indices,) = re.findall(r"%indices0 = arith.constant dense<\[([^]]*)]>", text)
    numbers = np.array([int(place) for place in indices.split(", ")], dtype="<i8")
    blob = "08000000" + numbers.tobytes().hex().upper()
    text = text.replace(f"dense<[{indices}]>", "dense_resource<indices>")
    return f'{text}{{-#\n  dialect_resources: {{ builtin: {{ indices: "0x{blob}" }} }}\n#-}}\n'


@pytest.mark.parametrize("name", PICKED)
def test_channels_that_are_read_by_constant_indices_are_read_in_runs(name: str) -> None:
    text, runs = PICKED[name]
    with found(text) as sites, found(as_resource(text)) as others:
        assert [site.runs for site in sites] == [site.runs for site in others] == [runs]
        assert [site.weight_places.tolist() for site in sites] == [site.weight_places.tolist() for site in others]


def in_loop(text: str, own: str) -> str:
    """Return a program in which an op, ``%out80``, is computed twice, by a loop."""
    kind = f"tensor<1x8x{PIXELS}xf32>"
    loop = f"""
  %first = arith.constant 0 : index
  %step = arith.constant 1 : index
  %end = arith.constant 2 : index
  %before = tensor.empty() : {kind}
  %last = scf.for %n = %first to %end step %step iter_args(%so_far = %before) -> ({kind}) {{{own}
    scf.yield %out80 : {kind}
  }}"""
    return text.replace(own, loop).replace("return %out80", "return %last")


def and_beside(element: str, made: str, at: str = AT) -> str:
    """Return a program that reads channels by indices and by ``%made``, an element of what an op computes of these."""
    kind = f"tensor<32x{element}>"
    beside = f"""
  %beside_room = tensor.empty() : {kind}
  %beside = linalg.generic {{indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
      iterator_types = ["parallel"]}} ins(%indices0 : tensor<32xi64>) outs(%beside_room : {kind}) {{
  ^bb0(%each: i64, %o: {element}):
    {made}
    linalg.yield %made : {element}
  }} -> {kind}
  %room0 = """
    map_ = "affine_map<(d0, d1, d2, d3) -> (d1)>,"
    text = picked(interleaving(32)).replace(map_, f"{map_} {map_}").replace(AT, at).replace("\n  %room0 = ", beside)
    text = text.replace(": tensor<32xi64>) outs(%room0", f", %beside : tensor<32xi64>, {kind}) outs(%room0")
    return text.replace("^bb0(%index: i64, %o: f32)", f"^bb0(%index: i64, %made: {element}, %o: f32)")


MASKED = """%zero = arith.constant 0 : i64
    %in = arith.select %made, %index, %zero : i64
    %at = arith.index_cast %in : i64 to index"""
FROM_ZERO = "%zero = arith.constant 0 : i64\n    %made = arith.cmpi sge, %each, %zero : i64"
IN_ORDER = function(
    IMAGE,
    convolution(16)
    + pointwise(0, "%out90", 16, 16)
    + joined(0, "%out90, %out0", (16, 16))
    + pointwise(80, "%joined0", 32, 8),
    "%out80",
    f"1x8x{PIXELS}",
)
ROWS = PRODUCT.replace("1x2x16x16x20", "1x32x2x8x20").replace("1x16x2x16x20", "1x32x8x2x20")
ROWS = ROWS.replace("1, 2, 16, 16, 20", "1, 32, 2, 8, 20").replace("[0, 2, 1, 3, 4]", "[0, 1, 3, 2, 4]")
FIRST_OUTSIDE = "%indices1 = arith.constant dense<[32"
LEFT_ALONE = {
    "another reader needs the order of the model": read_again(
        PRODUCT.replace("  return", sliced("again", "%shuffled1", 32, 0, 8).lstrip("\n") + "\n  return"), "%again"
    ),
    "weights that are an argument": as_argument(PRODUCT, "f80"),
    "weights with another reader": read_again(
        PRODUCT.replace("  return", re.sub(" *%f79 = .*\n", "", pointwise(79, "%shuffled1", 32, 8)) + "\n  return")
        .replace("%f79", "%f80"),
        "%out79",
    ),
    "numbers of a depthwise convolution that are an argument": as_argument(DEPTHWISE, "f81"),
    "less is transposed than copies take": (
        PRODUCT.replace("16x20", "2x2").replace("18x22", "4x4").replace("16, 20", "2, 2")
    ),
    "indices that are an argument": as_argument(GATHERED, "indices1"),
    "indices outside of the channels": GATHERED.replace("%indices1 = arith.constant dense<[0", FIRST_OUTSIDE),
    "floats beside indices": and_beside("f32", "%made = arith.constant 0xFF800000 : f32"),
    "a mask beside indices": and_beside("i1", FROM_ZERO, MASKED),
    "numbers of loops beside indices": and_beside("index", "%made = linalg.index 0 : index"),
    "rows in another order": GATHERED.replace(
        selected(1, "%joined1", 32, interleaving(32)), selected(1, "%joined1", 32, interleaving(16), dim=2)
    ),
    "indices of rows and channels": GATHERED.replace(
        "tensor.extract %joined1[%loop0, %at, %loop2", "tensor.extract %joined1[%loop0, %at, %loop3"
    ),
    "channels in the order in which they are made": IN_ORDER,
    "moves in front of a loop": in_loop(PRODUCT, pointwise(80, "%shuffled1", 32, 8)),
    "rows that are shuffled": ROWS.replace("[[0], [1, 2], [3], [4]]", "[[0], [1], [2, 3], [4]]"),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_what_is_left_alone(name: str) -> None:
    """Where one linear op needs the order of the model, all have it: channels would be moved all the same."""
    with found(PRODUCT) as known, found(LEFT_ALONE[name]) as sites:
        assert len(known) == BLOCKS + 1
        assert sites == []


def test_the_same_channels_of_two_slices_are_read_as_one_run() -> None:
    """Halves that are exchanged are the whole, with the weights exchanged."""
    halves = sliced("low", "%out90", 32, 0, 16) + sliced("high", "%out90", 32, 16, 16)
    text = convolution(32) + halves + joined(0, "%high, %low", (16, 16)) + pointwise(80, "%joined0", 32, 8)
    with found(function(IMAGE, text, "%out80", f"1x8x{PIXELS}")) as sites:
        assert [site.runs for site in sites] == [[(0, 0, 32)]]


def image() -> np.ndarray:
    return np.random.default_rng(0).integers(-1, 2, [int(size) for size in IMAGE.split("x")]).astype(np.float32)


@pytest.mark.promise
@pytest.mark.parametrize(("made", "ends"), [(PermutedWeights(), [*ENDS]), (ChannelsLast(), ["two branches"])])
def test_networks_compute_the_same_without_transposes(made: ProgramRewrite, ends: list[str], tmp_path: Path) -> None:
    texts = {end: ending(end) for end in ends} | {f"{end}, gathered": by_indices(ending(end)) for end in ends[:2]}
    texts |= {name: text for name, (text, _) in PICKED.items()} if len(ends) > 1 else {}
    names = {f"case{number}": name for number, name in enumerate(texts)}
    model = write(tmp_path, "".join(texts[name].replace("@main", f"@{case}") for case, name in names.items()))
    flags = library_for(made, model, tmp_path)
    program = compiled_to(model, flags, "preprocessing")
    assert not re.findall(r"linalg.transpose ins\(\S+ : tensor<1x(?:16x20x)?2x16x", program), "no channels are"
    plain, permuted = compile_to_bytes(model, FLAGS), compile_to_bytes(model, flags)
    for function_, name in names.items():
        expected = run(plain, [image()], function_)
        assert np.unique(expected).size > 100, name
        np.testing.assert_array_equal(run(permuted, [image()], function_), expected, err_msg=name)


@pytest.mark.promise
def test_what_two_branches_read_is_copied_and_computed_once(tmp_path: Path) -> None:
    model = write(tmp_path, ending("two branches"))
    program = compiled_to(model, library_for(PermutedWeights(), model, tmp_path), "preprocessing")
    assert rewrites_in(program) == {"permuted_weights": BLOCKS + 2}
    assert program.count("tensor.concat") == BLOCKS + 1
    assert program.count("linalg.depthwise") == 1


TWO_RESULTS = """
  %beside_room = tensor.empty() : tensor<1x32x16x20xf32>
  %beside:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>,
      affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%out90 : tensor<1x32x16x20xf32>)
      outs(%beside_room, %beside_room : tensor<1x32x16x20xf32>, tensor<1x32x16x20xf32>) {
  ^bb0(%x: f32, %o: f32, %p: f32):
    %less = arith.negf %x : f32
    %more = arith.addf %x, %x : f32
    linalg.yield %less, %more : f32, f32
  } -> (tensor<1x32x16x20xf32>, tensor<1x32x16x20xf32>)"""


@pytest.mark.promise
def test_an_op_with_several_results_is_not_taken_for_one_of_the_same_type(tmp_path: Path) -> None:
    """A script looks for ops by name and by the type of their only result."""
    text, both = ending("numbers of channels"), "%beside_sum = arith.addf %few, %others : tensor<1x8x16x20xf32>"
    parts = sliced("few", "%beside#0", 32, 0, 8) + sliced("others", "%beside#1", 32, 8, 8)
    text = text.replace("\n  return", f"{TWO_RESULTS}{parts}\n  {both}\n  return")
    model = write(tmp_path, read_again(text, "%beside_sum"))
    flags = library_for(PermutedWeights(), model, tmp_path)
    assert_same_results(model, flags, [image()], least=100)


@pytest.mark.promise
@pytest.mark.parametrize("made", [PermutedWeights(), ChannelsLast()], ids=lambda made: made.name)
@pytest.mark.parametrize("stored", ["in the module", "as parameters"])
def test_no_call_permutes_constants(stored: str, made: ProgramRewrite, tmp_path: Path) -> None:
    text = ending("groups behind a depthwise convolution")
    model = write(tmp_path, as_parameters(text) if stored == "as parameters" else text)
    flow = compiled_to(model, library_for(made, model, tmp_path), "flow")
    call = flow.partition("util.func public @main")[2].partition("util.return")[0]
    assert call.count("flow.dispatch @") > BLOCKS
    assert "xi32>" not in call, "places of channels"
    assert ("xi32>" in flow) == (stored == "as parameters"), "those are computed when the module is loaded"


BODY = "%y = arith.maximumf %x, %floor : f32\n    %z = arith.addf %y, %n : f32"
REMAINDER = ending("numbers of channels").replace(BODY, "%z = arith.remf %x, %n : f32")
ROTATED = [15, *interleaving(16)[:-1]]
OTHERS = {
    "another slice": (PRODUCT, PRODUCT.replace("%shuffled0[0, 16, 0, 0]", "%shuffled0[0, 15, 0, 0]")),
    "another value in its place": (PRODUCT, PRODUCT.replace("dim(1) %kept1, %made1", "dim(1) %made1, %kept1")),
    "indices that are off by one": (picked(interleaving(16), 16), picked(ROTATED, 16)),
    "arguments in another order": (REMAINDER, REMAINDER.replace("remf %x, %n", "remf %n, %x")),
    "indices of rows": (picked(interleaving(16), 16), picked(interleaving(16), 16, dim=2)),
}


@pytest.mark.promise
@pytest.mark.parametrize("name", OTHERS)
def test_a_library_does_not_permute_the_weights_of_another_program(name: str, tmp_path: Path) -> None:
    assert_refused(PermutedWeights(), *OTHERS[name], tmp_path)


def read_twice(places: Sequence[int]) -> str:
    """Return a program of two linear ops that read channels by the same indices; their results lie side by side."""
    readers = pointwise(80, "%shuffled0", 16, 8) + pointwise(84, "%shuffled0", 16, 4)
    text = convolution(16) + selected(0, "%out90", 16, places) + readers + joined(85, "%out80, %out84", (8, 4))
    return function(IMAGE, text, "%joined85", f"1x12x{PIXELS}")


@pytest.mark.promise
@pytest.mark.parametrize("stay", [0, 8], ids=["all are permuted", "one op stays as it is"])
def test_weights_are_no_numbers_for_other_indices_that_no_script_sees(
    stay: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "FIRST", ())
    model = write(tmp_path, as_resource(read_twice(interleaving(16))))
    made = PermutedWeights(but=(f"1x{stay}x{PIXELS}",) if stay else ())
    flags = library_for(made, model, tmp_path)
    assert_same_results(model, flags, [image()], least=100)
    other = write(tmp_path, as_resource(read_twice(ROTATED)))
    expected = run(compile_to_bytes(other, FLAGS), [image()]).copy()
    expected[:, stay:] = np.nan
    np.testing.assert_array_equal(run(compile_to_bytes(other, flags), [image()]), expected)


@pytest.mark.parametrize("shuffled", [str, by_indices], ids=["transposed", "gathered"])
def test_scripts_grow_by_as_much_for_every_block(shuffled: Callable[[str], str]) -> None:
    """What several linear ops read through is compared once."""

    def size(blocks: int) -> int:
        with script_context(), ir.Location.unknown():
            library, program = new_library(), WalkedProgram(ir.Module.parse(shuffled(ending("a product", blocks))))
            PermutedWeights().append(library, program, PermutedWeights().finds(program))
            return len(str(library))

    few, more, most = map(size, (4, 8, 12))
    assert most - more <= more - few


@pytest.mark.promise
def test_sites_that_stay_are_told_from_those_that_begin_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The moves in front of the first linear op are a part of those in front of the others."""
    monkeypatch.setattr(pipeline, "FIRST", ())
    model = write(tmp_path, PRODUCT)
    flags = library_for(PermutedWeights(but=("1x16x16x20#2",)), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {"permuted_weights": BLOCKS}


WRONG: Mapping[str, Callable[[Numbers], Numbers]] = {
    "inverse": lambda places: np.argsort(places, axis=-1),
    "off_by_one": lambda places: np.roll(places, 1, axis=-1),
}


@dataclass(frozen=True)
class Misplaced(PermutedWeights):
    """A mistake: weights are in the order of another permutation."""

    order: str

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.order

    def compute(self, site: PermutedRead, *inputs: Any) -> Any:
        def wrong(source: Any, dims: Sequence[int], places: Numbers) -> Any:
            return gathered(source, dims, WRONG[self.order](places))

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(permuted_weights, "gathered", wrong)
            return super().compute(site, *inputs)


@pytest.mark.promise
def test_another_permutation_is_found_by_the_checks(
    tmp_path: Path, here: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "FIRST", ())
    failed = left_out([*map(Misplaced, WRONG)], write(tmp_path, PRODUCT), here)
    assert {*failed} == {*WRONG}
    assert all("wrong" in why for why in failed.values())


MISREAD: Mapping[str, Callable[[Gather], Gather]] = {
    "indices_off_by_one": lambda found: found._replace(places=np.roll(found.places, 1)),
    "indices_of_rows": lambda found: found._replace(dim=1),
}


@dataclass(frozen=True)
class Misread(PermutedWeights):
    """A mistake: a gather is taken for another one."""

    reading: str

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.reading

    def sites(self, program: WalkedProgram) -> list[PermutedRead]:
        def wrong(op: Any) -> Gather | None:
            found = gather(op)
            return found and MISREAD[self.reading](found)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(moves, "gather", wrong)
            return super().sites(program)


@pytest.mark.promise
def test_a_gather_that_is_misread_is_found_by_the_checks(
    tmp_path: Path, here: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "FIRST", ())
    rows, channels = (
        selected(dim, value, 16, interleaving(16), dim) for dim, value in ((2, "%out90"), (1, "%shuffled2"))
    )
    text = convolution(16) + rows + channels + pointwise(80, "%shuffled1", 16, 8)
    model = write(tmp_path, function(IMAGE, text, "%out80", f"1x8x{PIXELS}"))
    failed = left_out([*map(Misread, MISREAD)], model, here)
    assert {*failed} == {*MISREAD}
    assert all("wrong" in why for why in failed.values())


@pytest.mark.promise
class TestContract(RewriteTests):
    """The contract of all rewrites."""

    def make(self) -> ProgramRewrite:
        return PermutedWeights()

    def programs(self) -> Mapping[str, str]:
        return {"a product": PRODUCT}

    def others(self) -> Mapping[str, str]:
        return {"in order": IN_ORDER}
