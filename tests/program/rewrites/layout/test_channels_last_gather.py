"""Enlarged images between convolutions: the same numbers, read as vectors of channels; and what is read otherwise."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from channels_first_networks import function, layer, weights
from enlarged_images import doubled, weighted
from rewriting import applies, assert_same_results, compiled_to, library_for, write

from mlir_sched.compiler.iree_compile import iree_compile_path, rewrites_in
from mlir_sched.program.rewrites.layout.channels_last import ChannelsLast

pytestmark = pytest.mark.promise

SMALL = "1x16x6x10"
FIRST, SECOND = (layer(n, "conv_2d_nchw_fchw", "%image", ("1x4x8x12", "16x4x3x3", SMALL), 1) for n in (0, 2))


def last(image: str, channels: int = 16) -> str:
    sizes = (f"1x{channels}x12x20", f"8x{channels}x1x1", "1x8x12x20")
    return layer(1, "conv_2d_nchw_fchw", image, sizes, 1)


def network(*between: str, image: str = "%large") -> str:
    """Return a network of two convolutions that enlarges the first one's result."""
    return function("1x4x8x12", "".join([FIRST, *between, last(image)]), "%out1", "1x8x12x20")


ENLARGING = network(doubled("%out0", SMALL))


def check_numbers(model: Path, flags: tuple[str, ...], batch: int = 1) -> None:
    """Compare a program with itself as it was, on integers, which are exact."""
    image = np.random.default_rng(0).integers(-4, 5, (batch, 4, 8, 12)).astype(np.float32)
    assert_same_results(model, flags, [image], least=40)


def dispatches(model: Path, flags: tuple[str, ...]) -> list[str]:
    """Return the dispatches of a program that run in every call."""
    lines = compiled_to(model, flags, "flow").splitlines()
    return [line for line in lines if "flow.dispatch @main" in line]


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("weights_of", [(), (weighted(SMALL),)], ids=["nearest", "weighted"])
def test_an_enlarged_image_is_made_with_channels_last(weights_of: tuple[str, ...], tmp_path: Path) -> None:
    image = "%large_weighted" if weights_of else "%large"
    model = write(tmp_path, network(doubled("%out0", SMALL), *weights_of, image=image))
    flags = library_for(ChannelsLast(), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing"))["channels_last"] == 3
    found = dispatches(model, flags)
    assert [line for line in found if "(tensor" in line and "-> tensor<12x20x16xf32>" in line], "three loops, in order"
    assert not any("transpose" in line for line in found)
    check_numbers(model, flags)


def test_the_pixels_are_read_as_vectors(tmp_path: Path) -> None:
    model = write(tmp_path, ENLARGING)
    flags = library_for(ChannelsLast(), model, tmp_path)
    vectors = "--mlir-print-ir-after=iree-codegen-generic-vectorization"
    command = [str(iree_compile_path()), *flags, str(model), vectors, "-o", os.devnull]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    (gather,) = (part for part in text.split("IR Dump") if "_12x20x16_f32()" in part)
    assert re.search(r"tensor<6x10x16xf32>, vector<1x1x(8|16)xf32>", gather)
    assert "vector.gather" not in gather


def test_images_of_a_batch_are_enlarged_each(tmp_path: Path) -> None:
    model = write(tmp_path, re.sub(r"<1x(\d+x\d+x\d+xf32)", r"<2x\1", ENLARGING))
    flags = library_for(ChannelsLast(), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing"))["channels_last"] == 3
    check_numbers(model, flags, batch=2)


@pytest.mark.landing
def test_loop_indices_say_the_channel_as_well_as_a_tensor_does(tmp_path: Path) -> None:
    text = ENLARGING.replace("%c_at = arith.index_cast %c_in : i64 to index", "%c_at = linalg.index 1 : index")
    assert text != ENLARGING
    model = write(tmp_path, text)
    flags = library_for(ChannelsLast(), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing"))["channels_last"] == 3
    check_numbers(model, flags)


JOINED = """
  %joined = tensor.concat dim(1) %large, %more : (tensor<1x16x12x20xf32>, tensor<1x16x12x20xf32>)
    -> tensor<1x32x12x20xf32>"""


@pytest.mark.landing
def test_enlarged_images_are_joined_with_channels_last(tmp_path: Path) -> None:
    both = doubled("%out0", SMALL) + SECOND + doubled("%out2", SMALL, "more") + JOINED
    model = write(tmp_path, function("1x4x8x12", FIRST + both + last("%joined", 32), "%out1", "1x8x12x20"))
    flags = library_for(ChannelsLast(), model, tmp_path)
    marks = rewrites_in(compiled_to(model, flags, "preprocessing"))
    assert marks["channels_last"] == 5, "three convolutions and two gathers"
    assert not any("transpose" in line for line in dispatches(model, flags))
    check_numbers(model, flags)


READ = "%pixel = tensor.extract %out0[%n_at, %c_at, %y_at, %x_at]"
OTHER = """%six = arith.constant 6 : index
    %last = arith.constant 15 : index
    %row = arith.remui %c_at, %six : index
    %other = arith.subi %last, %c_at : index
    %pixel = tensor.extract %out0[%n_at, {}, %x_at]"""
VARIED = {
    "channels are repeated": ("%large_c [[0, 1, 2]]", "%large_c_half [[0, 1, 2]]"),
    "rows of the image are channels of the result": (READ, OTHER.format("%y_at, %row")),
    "the place depends on the channel": (READ, OTHER.format("%c_at, %row")),
    "the last channel comes first": (READ, OTHER.format("%other, %y_at")),
}
CONSTANT = ("%out0[%n_at", "%fixed[%n_at")
HALF = """
  %large_c_half = arith.shrsi %large_c, %large_c : tensor<16xi64>
  %large_c_at"""


def varied(old: str, new: str) -> str:
    """Return a network that reads an image in a way of its own, given a part of its text and what stands in place."""
    fixed = f"\n  %fixed = arith.constant dense<{weights(SMALL, 3)}> : tensor<{SMALL}xf32>"
    text = network(fixed + doubled("%out0", SMALL).replace("\n  %large_c_at", HALF, 1))
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize("name", VARIED)
def test_whatever_is_read_at_computed_places_stays_what_it_is(name: str, tmp_path: Path) -> None:
    model = write(tmp_path, varied(*VARIED[name]))
    check_numbers(model, library_for(ChannelsLast(), model, tmp_path))


def test_a_network_that_reads_a_constant_image_alone_is_left_as_it_is(tmp_path: Path) -> None:
    assert not applies(ChannelsLast(), write(tmp_path, varied(*CONSTANT)))


def test_the_smaller_of_both_images_is_transposed_where_no_convolution_reads_the_larger(tmp_path: Path) -> None:
    second = layer(2, "conv_2d_nchw_fchw", "%out0", (SMALL, "16x16x1x1", SMALL), 1)
    body = FIRST + second + doubled("%out2", SMALL)
    model = write(tmp_path, function("1x4x8x12", body, "%large", "1x16x12x20"))
    flags = library_for(ChannelsLast(), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing"))["channels_last"] == 2
    check_numbers(model, flags)


def test_gathers_that_a_matcher_takes_for_one_another_are_told_apart(tmp_path: Path) -> None:
    repeated = doubled("%out0", SMALL, "more").replace("tensor.expand_shape %more_c ", "tensor.expand_shape %even ")
    even = "\n  %even = arith.shrsi %large_c, %large_c : tensor<16xi64>"
    both = "\n  %both = arith.addf %large, %more : tensor<1x16x12x20xf32>"
    model = write(tmp_path, network(doubled("%out0", SMALL) + even + repeated + both, image="%both"))
    check_numbers(model, library_for(ChannelsLast(), model, tmp_path))


def test_a_network_without_enlarged_images_is_rewritten_as_before(tmp_path: Path) -> None:
    joined = f"""
  %joined = tensor.concat dim(1) %out0, %out2 : (tensor<{SMALL}xf32>, tensor<{SMALL}xf32>) -> tensor<1x32x6x10xf32>"""
    third = layer(1, "conv_2d_nchw_fchw", "%joined", ("1x32x6x10", "8x32x1x1", "1x8x6x10"), 1)
    model = write(tmp_path, function("1x4x8x12", FIRST + SECOND + joined + third, "%out1", "1x8x6x10"))
    flags = library_for(ChannelsLast(), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {"channels_last": 3}
