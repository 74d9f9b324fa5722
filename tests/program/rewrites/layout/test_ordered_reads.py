"""What bodies read in the order of their loops, such as all pixels for their mean: the same numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from channels_first_networks import function, layer
from iree_cases import FLAGS
from rewriting import applies, compiled_to, library_for, run, write

from mlir_sched.compiler import compile_to_bytes
from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.program.rewrites.layout.channels_last import ChannelsLast
from mlir_sched.program.rewrites.layout.ordered_reads import OrderedReads

pytestmark = pytest.mark.promise

MEAN = """
  %zero = arith.constant 0.0 : f32
  %first = arith.constant 0 : index
  %rows = arith.constant 5 : index
  %columns = arith.constant 7 : index
  %count = arith.constant 35.0 : f32
  %window = tensor.empty() : tensor<5x7xi1>
  %ones = tensor.empty() : tensor<1x1xf32>
  %none = tensor.empty() : tensor<1x12x1x1xf32>
  %start = linalg.fill ins(%zero : f32) outs(%none : tensor<1x12x1x1xf32>) -> tensor<1x12x1x1xf32>
  %padded = tensor.pad {image} low[0, 0, 0, 0] high[0, 0, 1, 1] {{
  ^bb0(%n: index, %c: index, %h: index, %w: index):
    tensor.yield %zero : f32
  }} : tensor<1x12x5x7xf32> to tensor<1x12x6x8xf32>
  %sums:2 = linalg.generic {{indexing_maps = [
      affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5)>,
      affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>,
      affine_map<(d0, d1, d2, d3, d4, d5) -> (d2, d3)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}}
      ins(%window : tensor<5x7xi1>) outs(%start, %ones : tensor<1x12x1x1xf32>, tensor<1x1xf32>) {{
  ^bb0(%in: i1, %sum: f32, %one: f32):
    %channel = linalg.index 1 : index
    %row = linalg.index 4 : index
    %column = linalg.index 5 : index
    %pixel = tensor.extract %padded[%first, %channel, %row, %column] : tensor<1x12x6x8xf32>
    %row_in = arith.cmpi ult, %row, %rows : index
    %or_zero = arith.select %row_in, %pixel, %zero : f32
    %column_in = arith.cmpi ult, %column, %columns : index
    %term = arith.select %column_in, %or_zero, %zero : f32
    %total = arith.addf %term, %sum : f32
    linalg.yield %total, %count : f32, f32
  }} -> (tensor<1x12x1x1xf32>, tensor<1x1xf32>)
  %mean = linalg.generic {{indexing_maps = [
      affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
      ins(%sums#1 : tensor<1x1xf32>) outs(%sums#0 : tensor<1x12x1x1xf32>) {{
  ^bb0(%number: f32, %sum: f32):
    %quotient = arith.divf %sum, %number : f32
    linalg.yield %quotient : f32
  }} -> tensor<1x12x1x1xf32>"""


def mean(image: str = "%image") -> str:
    """Return the body of a program that returns the mean of 5x7 pixels of 12 channels."""
    return MEAN.format(image=image)


def program(body: str) -> str:
    return function("1x12x5x7", body, "%mean", "1x12x1x1")


def test_the_mean_is_a_sum_over_the_image_itself(tmp_path: Path) -> None:
    model = write(tmp_path, program(mean()))
    flags = library_for(OrderedReads(), model, tmp_path)
    rewritten = compiled_to(model, flags, "preprocessing")
    assert rewrites_in(rewritten) == {"ordered_reads": 2}
    assert "tensor.extract " not in rewritten
    assert "tensor.pad" not in rewritten
    image = np.random.default_rng(0).standard_normal((1, 12, 5, 7)).astype(np.float32)
    found = run(compile_to_bytes(model, flags), [image])
    np.testing.assert_allclose(found, image.mean(axis=(2, 3), keepdims=True, dtype=np.float64), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found, run(compile_to_bytes(model, FLAGS), [image]), rtol=1e-5, atol=1e-6)


def test_a_network_that_is_computed_channels_last_gathers_no_pixels(tmp_path: Path) -> None:
    layers = [
        layer(0, "conv_2d_nchw_fchw", "%image", ("1x4x7x9", "12x4x3x3", "1x12x5x7"), 1),
        layer(1, "conv_2d_nchw_fchw", "%out0", ("1x12x5x7", "12x12x1x1", "1x12x5x7"), 1),
    ]
    model = write(tmp_path, function("1x4x7x9", "".join(layers) + mean("%out1"), "%mean", "1x12x1x1"))
    flags = library_for(ChannelsLast(), model, tmp_path)
    rewritten = compiled_to(model, flags, "preprocessing")
    assert rewrites_in(rewritten)["channels_last"] == 2
    assert "tensor.extract " not in rewritten
    image = np.random.default_rng(0).integers(-4, 5, (1, 4, 7, 9)).astype(np.float32)
    expected = run(compile_to_bytes(model, FLAGS), [image])
    np.testing.assert_allclose(run(compile_to_bytes(model, flags), [image]), expected, rtol=1e-6)


VARIED = {
    "another number of pixels": ("%count = arith.constant 35.0", "%count = arith.constant 36.0"),
    "some rows are left out": ("%rows = arith.constant 5", "%rows = arith.constant 4"),
    "the largest pixel": ("arith.addf %term, %sum", "arith.maximumf %term, %sum"),
    "other comparisons": ("arith.cmpi ult, %row", "arith.cmpi ule, %row"),
    "a term is left out": ("arith.select %column_in, %or_zero", "arith.select %column_in, %pixel"),
    "padded in front": ("low[0, 0, 0, 0] high[0, 0, 1, 1]", "low[0, 0, 1, 1] high[0, 0, 0, 0]"),
    "the quotient is inverted": ("arith.divf %sum, %number", "arith.divf %number, %sum"),
}


@pytest.mark.parametrize("name", VARIED)
def test_what_is_no_mean_of_all_pixels_stays_what_it_is(name: str, tmp_path: Path) -> None:
    text = program(mean().replace(*VARIED[name]))
    assert text != program(mean())
    model = write(tmp_path, text)
    flags = library_for(OrderedReads(), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {"ordered_reads": 2}
    image = np.random.default_rng(0).integers(-4, 5, (1, 12, 5, 7)).astype(np.float32)
    expected = run(compile_to_bytes(model, FLAGS), [image])
    np.testing.assert_allclose(run(compile_to_bytes(model, flags), [image]), expected, rtol=1e-6)


OTHERS = {
    "rows and columns are exchanged": ("%channel, %row, %column]", "%channel, %column, %row]"),
    "a row is read at every place": ("%channel, %row, %column]", "%channel, %row, %row]"),
    "not the first image": ("%first = arith.constant 0", "%first = arith.constant 1"),
    "one column": ("%channel, %row, %column]", "%channel, %row, %rows]"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_read_in_order_stays(name: str, tmp_path: Path) -> None:
    text = program(mean().replace(*OTHERS[name]))
    assert text != program(mean())
    assert not applies(OrderedReads(), write(tmp_path, text))


def test_a_division_of_the_same_form_by_something_else_is_not_taken_for_a_mean(tmp_path: Path) -> None:
    again = mean().partition("  %mean =")[2].replace("%sums#1", "%filled").replace("%sums#0", "%mean")
    two = """
  %two = arith.constant 2.0 : f32
  %filled = linalg.fill ins(%two : f32) outs(%ones : tensor<1x1xf32>) -> tensor<1x1xf32>"""
    text = program(mean() + two + "\n  %again =" + again).replace("return %mean", "return %again")
    model = write(tmp_path, text)
    flags = library_for(OrderedReads(), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {"ordered_reads": 2}
    image = np.random.default_rng(0).integers(-4, 5, (1, 12, 5, 7)).astype(np.float32)
    expected = image.mean(axis=(2, 3), keepdims=True, dtype=np.float64) / 2
    np.testing.assert_allclose(run(compile_to_bytes(model, flags), [image]), expected, rtol=1e-5, atol=1e-6)


def test_images_of_several_sizes_with_as_many_channels_have_means(tmp_path: Path) -> None:
    turned = mean("turned").replace("%", "%other_").replace("turned", "%turned").replace("5x7", "7x5")
    turned = turned.replace("6x8", "8x6").replace("rows = arith.constant 5", "rows = arith.constant 7")
    turned = turned.replace("columns = arith.constant 7", "columns = arith.constant 5")
    transpose = """
  %empty = tensor.empty() : tensor<1x12x7x5xf32>
  %turned = linalg.transpose ins(%image : tensor<1x12x5x7xf32>) outs(%empty : tensor<1x12x7x5xf32>)
      permutation = [0, 1, 3, 2]"""
    both = "\n  %both = arith.addf %mean, %other_mean : tensor<1x12x1x1xf32>"
    text = program(mean() + transpose + turned + both).replace("return %mean", "return %both")
    model = write(tmp_path, text)
    flags = library_for(OrderedReads(), model, tmp_path)
    rewritten = compiled_to(model, flags, "preprocessing")
    assert rewrites_in(rewritten) == {"ordered_reads": 4}
    assert "tensor.extract " not in rewritten
    image = np.random.default_rng(0).integers(-4, 5, (1, 12, 5, 7)).astype(np.float32)
    expected = 2 * image.mean(axis=(2, 3), keepdims=True, dtype=np.float64)
    np.testing.assert_allclose(run(compile_to_bytes(model, flags), [image]), expected, rtol=1e-5, atol=1e-6)
