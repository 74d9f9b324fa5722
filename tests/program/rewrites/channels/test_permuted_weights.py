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
from permuted_channels import ENDS, IMAGE, PIXELS, ending, joined, pointwise, sliced
from rewriting import compiled_to, left_out, library_for, run, write
from scaled_channels import as_argument, as_parameters, read_again

from mlir_sched.compiler import ModelCompileError, compile_to_bytes
from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.program.rewrites import pipeline
from mlir_sched.program.rewrites.channels import permuted_weights
from mlir_sched.program.rewrites.channels.finding import permuted_reads
from mlir_sched.program.rewrites.channels.order import Numbers
from mlir_sched.program.rewrites.channels.permuted_read import PermutedRead
from mlir_sched.program.rewrites.channels.permuted_weights import PermutedWeights
from mlir_sched.program.rewrites.layout.channels_last import ChannelsLast
from mlir_sched.program.rewrites.linalg_ops import gathered
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.walked_program import WalkedProgram
from mlir_sched.targets.target import Target
from mlir_sched.testing import RewriteTests
from mlir_sched.transform_scripts.script.form import script_context

BLOCKS = 2


@contextmanager
def found(text: str) -> Iterator[list[PermutedRead]]:
    """Give the linear ops of a program that read permuted channels."""
    with script_context(), ir.Location.unknown():
        program = WalkedProgram(ir.Module.parse(text))
        yield permuted_reads(program)


@pytest.mark.parametrize("end", ENDS)
def test_every_linear_op_reads_runs_of_channels(end: str) -> None:
    with found(ending(end)) as sites:
        assert len(sites) == BLOCKS + (2 if end == "two branches" else 1)
        sizes = [[run.size for run in site.runs] for site in sites]
        assert sizes[:2] == [[8, 8], [4, 4, 8]]
        assert sizes[2:] == [[2, 2, 4, 8] * 2 if "groups" in end else [4, 4, 8, 16]] * (len(sites) - BLOCKS)


PRODUCT, DEPTHWISE = ending("a product"), ending("a padded depthwise convolution")
IN_ORDER = function(
    IMAGE,
    layer(90, "conv_2d_nchw_fchw", "%image", (IMAGE, "16x4x3x3", f"1x16x{PIXELS}"), 1)
    + pointwise(0, "%out90", 16, 16)
    + joined(0, "%out90, %out0", (16, 16))
    + pointwise(80, "%joined0", 32, 8),
    "%out80",
    f"1x8x{PIXELS}",
)
ROWS = PRODUCT.replace("1x2x16x6x10", "1x32x2x3x10").replace("1x16x2x6x10", "1x32x3x2x10")
ROWS = ROWS.replace("1, 2, 16, 6, 10", "1, 32, 2, 3, 10").replace("[0, 2, 1, 3, 4]", "[0, 1, 3, 2, 4]")
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
    "runs of few channels": ending("a product", 4),
    "channels in the order in which they are made": IN_ORDER,
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
    text = layer(90, "conv_2d_nchw_fchw", "%image", (IMAGE, "32x4x3x3", f"1x32x{PIXELS}"), 1) + halves
    text += joined(0, "%high, %low", (16, 16)) + pointwise(80, "%joined0", 32, 8)
    with found(function(IMAGE, text, "%out80", f"1x8x{PIXELS}")) as sites:
        assert [site.runs for site in sites] == [[(0, 0, 32)]]


def image() -> np.ndarray:
    return np.random.default_rng(0).integers(-1, 2, [int(size) for size in IMAGE.split("x")]).astype(np.float32)


@pytest.mark.promise
@pytest.mark.parametrize(("made", "ends"), [(PermutedWeights(), [*ENDS]), (ChannelsLast(), ["two branches"])])
def test_networks_compute_the_same_without_transposes(made: ProgramRewrite, ends: list[str], tmp_path: Path) -> None:
    names = {f"case{number}": name for number, name in enumerate(ends)}
    model = write(tmp_path, "".join(ending(end).replace("@main", f"@{case}") for case, end in names.items()))
    flags = library_for(made, model, tmp_path)
    program = compiled_to(model, flags, "preprocessing")
    assert not re.findall(r"linalg.transpose ins\(\S+ : tensor<1x(?:6x10x)?2x16x", program), "no channels are"
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


@pytest.mark.promise
def test_a_library_does_not_permute_the_weights_of_another_slice(tmp_path: Path) -> None:
    flags = library_for(PermutedWeights(), write(tmp_path, PRODUCT), tmp_path)
    other = write(tmp_path, PRODUCT.replace("%shuffled0[0, 16, 0, 0]", "%shuffled0[0, 15, 0, 0]"))
    with pytest.raises(ModelCompileError):
        compile_to_bytes(other, flags)


@pytest.mark.promise
def test_sites_that_stay_are_told_from_those_that_begin_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The moves in front of the first linear op are a part of those in front of the others."""
    monkeypatch.setattr(pipeline, "FIRST", ())
    model = write(tmp_path, PRODUCT)
    flags = library_for(PermutedWeights(but=("1x16x6x10#2",)), model, tmp_path)
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


@pytest.mark.promise
class TestContract(RewriteTests):
    """The contract of all rewrites."""

    def make(self) -> ProgramRewrite:
        return PermutedWeights()

    def programs(self) -> Mapping[str, str]:
        return {"a product": PRODUCT}

    def others(self) -> Mapping[str, str]:
        return {"in order": IN_ORDER}
