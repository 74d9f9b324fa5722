"""Reductions in parts for several cores: the numbers, and which reductions are split."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rewriting import applies, compiled_to, library_for, run, write

from mlir_sched.compiler import ModelCompileError, compile_to_bytes
from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.program.rewrites.dispatches.split_reduction import SplitReduction

pytestmark = pytest.mark.promise

TWO = SplitReduction(cores=2)


def reduction(shape: tuple[int, ...], kept: tuple[int, ...], element: str, combine: str = "arith.addf") -> str:
    """Return a reduction of one argument to the kept dims, onto a second; ``element`` makes ``%y`` from ``%x``."""
    loops = ", ".join(f"d{d}" for d in range(len(shape)))
    result = ", ".join(f"d{d}" for d in kept)
    kinds = ", ".join(f'"{"parallel" if d in kept else "reduction"}"' for d in range(len(shape)))
    image = f"tensor<{''.join(f'{size}x' for size in shape)}f32>"
    sums = f"tensor<{''.join(f'{shape[d]}x' for d in kept)}f32>"
    return f"""
func.func @main(%image: {image}, %init: {sums}) -> {sums} {{
  %result = linalg.generic {{indexing_maps = [affine_map<({loops}) -> ({loops})>, affine_map<({loops}) -> ({result})>],
      iterator_types = [{kinds}]}} ins(%image : {image}) outs(%init : {sums}) {{
  ^bb0(%x: f32, %sum: f32):
    {element}
    %next = {combine} %sum, %y : f32
    linalg.yield %next : f32
  }} -> {sums}
  return %result : {sums}
}}
"""


SQUARE = "%y = arith.mulf %x, %x : f32"
PLACE = """%place = linalg.index 1 : index
    %number = arith.index_cast %place : index to i32
    %factor = arith.sitofp %number : i32 to f32
    %y = arith.mulf %x, %factor : f32"""
ABS = "%y = math.absf %x : f32"
CASES: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], Callable[[np.ndarray], np.ndarray]]] = {
    "sum of squares": (reduction((1, 256, 512), (0,), SQUARE), (1, 256, 512), (1,), lambda x: (x * x).sum((1, 2))),
    "one number": (reduction((70002,), (), ABS), (70002,), (), lambda x: np.abs(x).sum()),
    "largest": (
        reduction((1, 3, 40000), (0,), ABS, "arith.maximumf"), (1, 3, 40000), (1,), lambda x: np.abs(x).max((1, 2))
    ),
    "product": (
        reduction((1, 65538), (0,), "%y = math.cos %x : f32", "arith.mulf"),
        (1, 65538), (1,), lambda x: np.cos(x).prod(1),
    ),
}  # fmt: skip


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("name", CASES)
def test_parts_make_the_same_result(name: str, tmp_path: Path) -> None:
    text, shape, kept, expected = CASES[name]
    model = write(tmp_path, text)
    flags = library_for(TWO, model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {"split_reduction": 1}
    assert compiled_to(model, flags, "flow").count("flow.executable private") == 2
    values = 0.01 * np.random.default_rng(0).standard_normal(shape, np.float32)
    init = np.full(kept, 0.01, np.float32)
    found = run(compile_to_bytes(model, flags), [values, init])
    reduced = expected(values.astype(np.float64))
    with_init = {"largest": np.maximum(reduced, 0.01), "product": reduced * 0.01}.get(name, reduced + 0.01)
    np.testing.assert_allclose(found, with_init, rtol=1e-4)


def test_named_op_is_split_as_well(tmp_path: Path) -> None:
    model = write(
        tmp_path,
        """
func.func @main(%a: tensor<100000xf32>, %b: tensor<100000xf32>, %init: tensor<f32>) -> tensor<f32> {
  %dot = linalg.dot ins(%a, %b : tensor<100000xf32>, tensor<100000xf32>) outs(%init : tensor<f32>) -> tensor<f32>
  return %dot : tensor<f32>
}
""",
    )
    flags = library_for(TWO, model, tmp_path)
    a, b = np.random.default_rng(0).standard_normal((2, 100000), np.float32)
    found = run(compile_to_bytes(model, flags), [a, b, np.zeros((), np.float32)])
    np.testing.assert_allclose(found, np.dot(a.astype(np.float64), b), rtol=1e-4)


def test_every_reduction_of_a_kind_is_split(tmp_path: Path) -> None:
    one, other = (reduction((1, 100000), (0,), SQUARE).replace("@main", name) for name in ("@one", "@other"))
    third = reduction((1, 100000), (0,), ABS).replace("@main", "@third")
    model = write(tmp_path, one + other + third)
    text = compiled_to(model, library_for(TWO, model, tmp_path), "preprocessing")
    assert rewrites_in(text) == {"split_reduction": 3}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (reduction((2, 100000), (0,), SQUARE), "every core has a result"),
        (reduction((1, 1000), (0,), SQUARE), "it is short"),
        (reduction((1, 65537), (0,), SQUARE), "no part divides a prime"),
        (reduction((1, 100000), (0,), SQUARE, "arith.subf"), "parts of differences do not add up"),
        (reduction((1, 100000), (0,), PLACE), "it reads its place"),
        (reduction((1, 100000), (0,), "%y = arith.mulf %x, %sum : f32"), "an element depends on those before"),
    ],
)
def test_others_are_left(text: str, why: str, tmp_path: Path) -> None:
    assert not applies(TWO, write(tmp_path, text)), why


def test_nothing_is_split_for_one_core(tmp_path: Path) -> None:
    model = write(tmp_path, CASES["one number"][0])
    assert applies(TWO, model)
    assert not applies(SplitReduction(cores=1), model)


def test_a_library_for_another_body_is_an_error(tmp_path: Path) -> None:
    flags = library_for(TWO, write(tmp_path, reduction((1, 100000), (0,), SQUARE)), tmp_path)
    with pytest.raises(ModelCompileError):
        compile_to_bytes(write(tmp_path, reduction((1, 100000), (0,), ABS)), flags)
