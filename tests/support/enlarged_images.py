"""Images that are enlarged as PyTorch's exporter writes it: pixels read at rows and columns from tensors of indices."""

from __future__ import annotations

COUNTED = """
  %{name}_empty = tensor.empty() : tensor<{size}xi64>
  %{name} = linalg.generic {{indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}}
      outs(%{name}_empty : tensor<{size}xi64>) {{
  ^bb0(%o: i64):
    %i = linalg.index 0 : index
    %number = arith.index_cast %i : index to i64
    linalg.yield %number : i64
  }} -> tensor<{size}xi64>"""
HALVED = """
  %{name} = linalg.generic {{indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
      iterator_types = ["parallel"]}} ins(%{source} : tensor<{size}xi64>) outs(%{source}_empty : tensor<{size}xi64>) {{
  ^bb0(%i: i64, %o: i64):
    %two = arith.constant 2 : i64
    %half = arith.divsi %i, %two : i64
    linalg.yield %half : i64
  }} -> tensor<{size}xi64>"""
WEIGHTS = """
  %{name}_weights_empty = tensor.empty() : tensor<{size}xf32>
  %{name}_weights = linalg.generic {{indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
      iterator_types = ["parallel"]}}
      ins(%{name}_x : tensor<{size}xi64>) outs(%{name}_weights_empty : tensor<{size}xf32>) {{
  ^bb0(%i: i64, %o: f32):
    %number = arith.sitofp %i : i64 to f32
    linalg.yield %number : f32
  }} -> tensor<{size}xf32>
  %{name}_weighted = linalg.generic {{indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>,
      affine_map<(d0, d1, d2, d3) -> (d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
      ins(%{name}, %{name}_weights : tensor<{image}xf32>, tensor<{size}xf32>)
      outs(%{name}_empty : tensor<{image}xf32>) {{
  ^bb0(%pixel: f32, %weight: f32, %o: f32):
    %product = arith.mulf %pixel, %weight : f32
    linalg.yield %product : f32
  }} -> tensor<{image}xf32>"""
GATHERED = """
  %{name}_c_at = tensor.expand_shape %{name}_c [[0, 1, 2]] output_shape [{channels}, 1, 1]
      : tensor<{channels}xi64> into tensor<{channels}x1x1xi64>
  %{name}_rows = tensor.expand_shape %{name}_y_half [[0, 1]] output_shape [{rows}, 1]
      : tensor<{rows}xi64> into tensor<{rows}x1xi64>
  %{name}_empty = tensor.empty() : tensor<{batch}x{channels}x{rows}x{columns}xf32>
  %{name} = linalg.generic {{indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d1, 0, 0)>,
      affine_map<(d0, d1, d2, d3) -> (d2, 0)>, affine_map<(d0, d1, d2, d3) -> (d3)>,
      affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
      ins(%{name}_c_at, %{name}_rows, %{name}_x_half
          : tensor<{channels}x1x1xi64>, tensor<{rows}x1xi64>, tensor<{columns}xi64>)
      outs(%{name}_empty : tensor<{batch}x{channels}x{rows}x{columns}xf32>) {{
  ^bb0(%c: i64, %y: i64, %x: i64, %o: f32):
    %zero = arith.constant 0 : i64
    %n_at = linalg.index 0 : index{place}
    %pixel = tensor.extract {image}[%n_at, %c_at, %y_at, %x_at] : tensor<{source}xf32>
    linalg.yield %pixel : f32
  }} -> tensor<{batch}x{channels}x{rows}x{columns}xf32>"""
PLACE = """
    %{dim}_size = arith.constant {size} : i64
    %{dim}_below = arith.cmpi slt, %{dim}, %zero : i64
    %{dim}_from_end = arith.addi %{dim}, %{dim}_size : i64
    %{dim}_in = arith.select %{dim}_below, %{dim}_from_end, %{dim} : i64
    %{dim}_at = arith.index_cast %{dim}_in : i64 to index"""


def doubled(image: str, source: str, name: str = "large") -> str:
    """Return ops that enlarge an image to twice its rows and columns, each pixel four times (``mode="nearest"``).

    Args:
        image: The image.
        source: Its shape: batch, channels, rows, columns.
        name: Name of the result.
    """
    batch, channels, rows, columns = map(int, source.split("x"))
    counted = COUNTED.format(name=f"{name}_c", size=channels)
    for dim, size in (("y", 2 * rows), ("x", 2 * columns)):
        numbers = f"{name}_{dim}"
        counted += COUNTED.format(name=numbers, size=size)
        counted += HALVED.format(name=f"{numbers}_half", source=numbers, size=size)
    sizes = {"c": channels, "y": rows, "x": columns}
    place = "".join(PLACE.format(dim=dim, size=size) for dim, size in sizes.items())
    shape = {"batch": batch, "channels": channels, "rows": 2 * rows, "columns": 2 * columns}
    return counted + GATHERED.format(name=name, place=place, image=image, source=source, **shape)


def weighted(source: str, name: str = "large") -> str:
    """Return ops that multiply the columns of such an image by their numbers, as interpolations weight them."""
    batch, channels, rows, columns = map(int, source.split("x"))
    image = f"{batch}x{channels}x{2 * rows}x{2 * columns}"
    return WEIGHTS.format(name=name, size=2 * columns, image=image)
