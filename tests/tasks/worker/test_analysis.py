from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import iree_cases as cases
import pytest
from iree.compiler import ir, passmanager

from mlir_sched.payload import ConvolutionDims, Dispatch, LinalgOp, LinearExpr, OpKind
from mlir_sched.tasks.worker.analysis import NotTunableError, OnlyCopiesError, analyse, tensor_spec


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with ir.Context() as the_context, ir.Location.unknown():
        the_context.allow_unregistered_dialects = True
        yield


def analyse_text(text: str) -> Dispatch:
    module = ir.Module.parse(text)  # a function does not keep its module alive
    return analyse(next(iter(module.body)).operation)


def store(type_: str) -> str:
    """Return how a dispatch stores %r into its binding %out."""
    sizes = ", ".join(type_.removeprefix("tensor<").split("x")[:-1])
    rank = sizes.count(",") + 1
    return (
        f"iree_tensor_ext.dispatch.tensor.store %r, %out, offsets = [{', '.join(['0'] * rank)}], sizes = [{sizes}], "
        f"strides = [{', '.join(['1'] * rank)}] : {type_} -> !iree_tensor_ext.dispatch.tensor<writeonly:{type_}>"
    )


def function_text(arguments: str, body: str, type_: str) -> str:
    """Return a function that stores its last value, %r, as dispatches do."""
    binding = f"%out: !iree_tensor_ext.dispatch.tensor<writeonly:{type_}>"
    return f"func.func @f({arguments}, {binding}) {{\n{body}\n{store(type_)}\nreturn\n}}"


def analysed(arguments: str, *body: str, type_: str) -> Dispatch:
    return analyse_text(function_text(arguments, "\n".join(body), type_))


def only(arguments: str, body: str, type_: str) -> LinalgOp:
    dispatch = analysed(arguments, body, type_=type_)
    (op,) = dispatch.ops
    return op


A, B, C = "tensor<4x8xf32>", "tensor<8x16xf32>", "tensor<4x16xf32>"
MATMUL = f"%r = linalg.matmul ins(%a, %b : {A}, {B}) outs(%c : {C}) -> {C}"


def test_a_matmul_is_a_contraction_with_its_loops() -> None:
    op = only(f"%a: {A}, %b: {B}, %c: {C}", MATMUL, C)
    assert (op.name, op.kind, op.extents) == ("linalg.matmul", OpKind.CONTRACTION, (4, 16, 8))
    assert op.iterator_types == ("parallel", "parallel", "reduction")
    assert op.body == ("arith.mulf", "arith.addf")
    dims = op.contraction_dims
    assert (dims.batch, dims.m, dims.n, dims.k) == ((), (0,), (1,), (2,))


def test_a_chain_knows_its_producers_and_its_result() -> None:
    dispatch = analysed(
        f"%a: {A}, %b: {B}, %z: f32",
        f"%e = tensor.empty() : {C}",
        f"%c = linalg.fill ins(%z : f32) outs(%e : {C}) -> {C}",
        f"%m = linalg.matmul ins(%a, %b : {A}, {B}) outs(%c : {C}) -> {C}",
        "%r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],"
        f'  iterator_types = ["parallel", "parallel"]}} ins(%m : {C}) outs(%e : {C}) {{',
        "^bb0(%x: f32, %o: f32):\n  %k = arith.constant 1.0 : f32\n  %s = arith.addf %x, %k : f32",
        f"  linalg.yield %s : f32\n}} -> {C}",
        type_=C,
    )
    assert [op.kind for op in dispatch.ops] == [OpKind.FILL, OpKind.CONTRACTION, OpKind.ELEMENTWISE]
    assert [operand.producer for operand in dispatch.ops[1].outputs] == [0]
    assert [operand.producer for operand in dispatch.ops[2].inputs] == [1]
    assert dispatch.results == (2,)
    assert dispatch.ops[2].body == ("arith.addf",)
    assert dispatch.other_ops == ()
    assert dispatch.root.index == 2


def test_an_integer_matmul_with_extensions_is_a_contraction() -> None:
    op = only(
        "%a: tensor<4x8xi8>, %b: tensor<8x16xi8>, %c: tensor<4x16xi32>",
        "%r = linalg.matmul ins(%a, %b : tensor<4x8xi8>, tensor<8x16xi8>) outs(%c : tensor<4x16xi32>) "
        "-> tensor<4x16xi32>",
        "tensor<4x16xi32>",
    )
    assert op.kind is OpKind.CONTRACTION
    assert op.body == ("arith.extsi", "arith.extsi", "arith.muli", "arith.addi")


def test_a_convolution_has_strided_maps() -> None:
    op = only(
        "%a: tensor<1x17x8xf32>, %w: tensor<3x8x4xf32>, %c: tensor<1x8x4xf32>",
        "%r = linalg.conv_1d_nwc_wcf {dilations = dense<1> : tensor<1xi64>, strides = dense<2> : tensor<1xi64>} "
        "ins(%a, %w : tensor<1x17x8xf32>, tensor<3x8x4xf32>) outs(%c : tensor<1x8x4xf32>) -> tensor<1x8x4xf32>",
        "tensor<1x8x4xf32>",
    )
    assert (op.kind, op.extents) == (OpKind.CONVOLUTION, (1, 8, 4, 3, 8))
    assert op.inputs[0].indexing_map[1] == LinearExpr((0, 2, 0, 1, 0))
    assert op.convolution_dims == ConvolutionDims(
        batch=(0,), output_image=(1,), output_channel=(2,), filter_loop=(3,), input_channel=(4,), depth=()
    )


def test_a_depthwise_convolution_has_a_depth_and_no_channels() -> None:
    op = only(
        "%a: tensor<2x6x7x8xf32>, %w: tensor<8x3x3xf32>, %c: tensor<2x8x4x5xf32>",
        "%r = linalg.generic {indexing_maps = [affine_map<(n, c, h, w, i, j) -> (c, i, j)>,"
        " affine_map<(n, c, h, w, i, j) -> (n, h + i, w + j, c)>, affine_map<(n, c, h, w, i, j) -> (n, c, h, w)>],"
        ' iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}'
        " ins(%w, %a : tensor<8x3x3xf32>, tensor<2x6x7x8xf32>) outs(%c : tensor<2x8x4x5xf32>) {\n"
        "^bb0(%x: f32, %y: f32, %o: f32):\n  %p = arith.mulf %x, %y : f32\n  %s = arith.addf %o, %p : f32\n"
        "  linalg.yield %s : f32\n} -> tensor<2x8x4x5xf32>",
        "tensor<2x8x4x5xf32>",
    )
    assert op.kind is OpKind.CONVOLUTION
    assert op.convolution_dims == ConvolutionDims(
        batch=(0,), output_image=(2, 3), output_channel=(), filter_loop=(4, 5), input_channel=(), depth=(1,)
    )
    assert op.image_and_filter == (op.inputs[1], op.inputs[0])


def test_a_pooling_is_a_convolution_over_its_window() -> None:
    op = only(
        "%a: tensor<1x8x8x4xf32>, %w: tensor<2x2xf32>, %c: tensor<1x4x4x4xf32>",
        "%r = linalg.pooling_nhwc_max {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>} "
        "ins(%a, %w : tensor<1x8x8x4xf32>, tensor<2x2xf32>) outs(%c : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>",
        "tensor<1x4x4x4xf32>",
    )
    assert op.kind is OpKind.CONVOLUTION
    assert sorted(op.extents[dim] for dim in op.reduction_dims) == [2, 2]


GENERIC = """%r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}}
  ins(%a, %b : {a}, {b}) outs(%c : {c}) {{
^bb0(%x: f32, %y: f32, %o: f32):
  {body}
  linalg.yield %s : f32
}} -> {c}"""
MATMUL_MAPS = "affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("%p = arith.mulf %x, %y : f32\n%s = arith.addf %o, %p : f32", OpKind.CONTRACTION),
        ("%p = arith.mulf %y, %x : f32\n%s = arith.addf %p, %o : f32", OpKind.CONTRACTION),
        ("%p = arith.mulf %x, %x : f32\n%s = arith.addf %o, %p : f32", OpKind.REDUCTION),
        ("%p = arith.mulf %x, %y : f32\n%s = arith.maximumf %o, %p : f32", OpKind.REDUCTION),
        ("%p = arith.subf %x, %y : f32\n%s = arith.addf %o, %p : f32", OpKind.REDUCTION),
        ("%p = arith.mulf %x, %y : f32\n%s = arith.addf %p, %p : f32", OpKind.REDUCTION),
    ],
)
def test_only_a_sum_of_products_is_a_contraction(body: str, kind: OpKind) -> None:
    iterators = '"parallel", "parallel", "reduction"'
    text = GENERIC.format(maps=MATMUL_MAPS, iterators=iterators, a=A, b=B, c=C, body=body)
    assert only(f"%a: {A}, %b: {B}, %c: {C}", text, C).kind is kind


def test_a_loop_that_only_one_factor_has_makes_it_a_reduction() -> None:
    maps = "affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (i, j)>, affine_map<(i, j, k) -> (i, j)>"
    body = "%p = arith.mulf %x, %y : f32\n%s = arith.addf %o, %p : f32"
    text = GENERIC.format(maps=maps, iterators='"parallel", "parallel", "reduction"', a=A, b=C, c=C, body=body)
    assert only(f"%a: {A}, %b: {C}, %c: {C}", text, C).kind is OpKind.REDUCTION


@pytest.mark.parametrize(
    ("scalar", "kind"),
    [
        ("linalg.index 0 : index", OpKind.ELEMENTWISE),
        ("tensor.extract %t[%z] : tensor<4xf32>", OpKind.OTHER),
    ],
)
def test_an_op_that_reads_at_computed_places_is_other_and_one_that_computes_with_indices_is_not(
    scalar: str, kind: OpKind
) -> None:
    op = only(
        "%t: tensor<4xf32>, %z: index, %c: tensor<4xf32>",
        '%r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} '
        f"outs(%c : tensor<4xf32>) {{\n^bb0(%o: f32):\n  %s = {scalar}\n  linalg.yield %o : f32\n}} -> tensor<4xf32>",
        "tensor<4xf32>",
    )
    assert op.kind is kind


def test_a_reduction_that_computes_with_indices_is_other() -> None:
    op = only(
        "%a: tensor<2x4xi32>, %c: tensor<2xi32>",
        "%r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], "
        'iterator_types = ["parallel", "reduction"]} ins(%a : tensor<2x4xi32>) outs(%c : tensor<2xi32>) {\n'
        "^bb0(%x: i32, %o: i32):\n  %i = linalg.index 1 : index\n  %j = arith.index_cast %i : index to i32\n"
        "  %s = arith.addi %o, %j : i32\n  linalg.yield %s : i32\n} -> tensor<2xi32>",
        "tensor<2xi32>",
    )
    assert op.kind is OpKind.OTHER


def test_a_map_that_is_not_linear_is_other() -> None:
    op = only(
        "%a: tensor<2xf32>, %c: tensor<4xf32>",
        "%r = linalg.generic {indexing_maps = [affine_map<(i) -> (i floordiv 2)>, affine_map<(i) -> (i)>], "
        'iterator_types = ["parallel"]} ins(%a : tensor<2xf32>) outs(%c : tensor<4xf32>) {\n^bb0(%x: f32, %o: f32):\n'
        "  linalg.yield %x : f32\n} -> tensor<4xf32>",
        "tensor<4xf32>",
    )
    assert op.kind is OpKind.OTHER
    assert op.extents == (4,)


def test_ops_between_the_linalg_ops_are_named() -> None:
    dispatch = analysed(
        f"%a: tensor<4x16xf32>, %b: {B}, %c: {C}",
        f"%s = tensor.extract_slice %a[0, 0] [4, 8] [1, 1] : tensor<4x16xf32> to {A}",
        f"%r = linalg.matmul ins(%s, %b : {A}, {B}) outs(%c : {C}) -> {C}",
        type_=C,
    )
    assert dispatch.other_ops == ("tensor.extract_slice",)
    assert dispatch.ops[0].inputs[0].producer is None


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        ("tensor<4x?xf32>", r"dimension 1 of tensor<4x\?xf32> is dynamic"),
        ("tensor<4xi3>", "element type i3"),
        ("tensor<4xcomplex<f32>>", r"complex<f32>, of which MLIR has no vectors"),
        ('tensor<4xf32, "tiled">', "packed by IREE's data tiling"),
    ],
)
def test_what_cannot_be_tuned_is_named(type_: str, message: str) -> None:
    with pytest.raises(NotTunableError, match=message):
        tensor_spec(ir.Type.parse(type_))


def test_a_dispatch_without_linalg_is_not_tunable() -> None:
    with pytest.raises(NotTunableError, match="no linalg op"):
        analyse_text("func.func @f() { return }")
    with pytest.raises(NotTunableError, match=r"only tensor\.pad"):
        analyse_text(
            "func.func @f(%a: tensor<4xf32>, %z: f32) -> tensor<6xf32> { %r = tensor.pad %a low[1] high[1] {\n"
            "^bb0(%i: index):\n tensor.yield %z : f32\n} : tensor<4xf32> to tensor<6xf32>\n"
            "return %r : tensor<6xf32> }"
        )


def test_a_dispatch_that_sorts_says_so() -> None:
    text = (
        "func.func @f(%a: tensor<8xf32>) -> tensor<8xf32> {\n"
        "%r = iree_linalg_ext.sort dimension(0) outs(%a : tensor<8xf32>) {\n^bb0(%x: f32, %y: f32):\n"
        "%l = arith.cmpf olt, %x, %y : f32\niree_linalg_ext.yield %l : i1\n} -> tensor<8xf32>\n"
        "return %r : tensor<8xf32> }"
    )
    with pytest.raises(NotTunableError, match=r"it sorts \(iree_linalg_ext\.sort\)"):
        analyse_text(text)


def test_a_dispatch_whose_result_is_the_place_of_the_largest_says_so() -> None:
    text = (
        "func.func @f(%a: tensor<8x16xf32>, %v: tensor<8xf32>, %p: tensor<8xi32>) -> tensor<8xi32> {\n"
        "%z = arith.constant 0 : i32\n"
        "%i = linalg.fill ins(%z : i32) outs(%p : tensor<8xi32>) -> tensor<8xi32>\n"
        "%r:2 = iree_linalg_ext.arg_compare dimension(1) ins(%a : tensor<8x16xf32>)\n"
        "  outs(%v, %i : tensor<8xf32>, tensor<8xi32>) {\n^bb0(%x: f32, %y: f32):\n"
        "%l = arith.cmpf ogt, %x, %y : f32\niree_linalg_ext.yield %l : i1\n} -> tensor<8xf32>, tensor<8xi32>\n"
        "return %r#1 : tensor<8xi32> }"
    )
    with pytest.raises(NotTunableError, match=r"it finds the place of an extreme element \(iree_linalg_ext"):
        analyse_text(text)


def test_a_dispatch_that_computes_does_not_only_copy() -> None:
    inserted = f"{MATMUL}\n%s = tensor.insert_slice %r into %d[0, 0] [4, 16] [1, 1] : {C} into tensor<8x16xf32>"
    arguments = f"%a: {A}, %b: {B}, %c: {C}, %d: tensor<8x16xf32>"
    copied = inserted.partition("\n")[2].replace("%r", "%c")
    for body, kind in ((inserted, NotTunableError), (copied, OnlyCopiesError)):
        with pytest.raises(NotTunableError, match=r"only tensor\.insert_slice") as raised:
            analyse_text(function_text(arguments, body, "tensor<8x16xf32>").replace("store %r", "store %s"))
        assert type(raised.value) is kind


def test_a_linalg_op_on_buffers_is_a_copy() -> None:
    with pytest.raises(OnlyCopiesError, match="only copies"):
        analyse_text(
            "func.func @f(%a: memref<4xf32>, %b: memref<4xf32>) {\n"
            "  linalg.copy ins(%a : memref<4xf32>) outs(%b : memref<4xf32>)\n  return\n}"
        )


NAMED_OPS = {
    f"linalg.matmul ins(%a, %b : {A}, {B}) outs(%c : {C}) -> {C}": C,
    f"linalg.elementwise <add> ins(%c, %c : {C}, {C}) outs(%c : {C}) -> {C}": C,
    f"linalg.transpose ins(%c : {C}) outs(%d : tensor<16x4xf32>) permutation = [1, 0]": "tensor<16x4xf32>",
    f"linalg.broadcast ins(%v : tensor<4xf32>) outs(%c : {C}) dimensions = [1]": C,
    f"linalg.reduce {{arith.addf}} ins(%c : {C}) outs(%v : tensor<4xf32>) dimensions = [1]": "tensor<4xf32>",
}


@pytest.mark.parametrize(("body", "type_"), NAMED_OPS.items(), ids=lambda text: text.split(" ")[0])
def test_a_named_op_reads_as_its_generic_form(body: str, type_: str) -> None:
    arguments = f"%a: {A}, %b: {B}, %c: {C}, %d: tensor<16x4xf32>, %v: tensor<4xf32>"
    text = function_text(arguments, f"%r = {body}", type_)
    op = analyse_text(text).ops[0]
    generic = ir.Module.parse(text)
    passmanager.PassManager.parse("builtin.module(func.func(linalg-generalize-named-ops))").run(generic.operation)
    expected = analyse(next(iter(generic.body)).operation).ops[0]
    assert (op.kind, op.extents, op.iterator_types, op.body) == (
        expected.kind,
        expected.extents,
        expected.iterator_types,
        expected.body,
    )
    assert (op.inputs, op.outputs) == (expected.inputs, expected.outputs)


@pytest.mark.promise
def test_softmax_is_read_after_its_decomposition(tmp_path: Path) -> None:
    task = cases.task_of(
        tmp_path,
        "func.func @s(%a: tensor<16x32xf32>) -> tensor<16x32xf32> {\n  %e = tensor.empty() : tensor<16x32xf32>\n"
        "  %r = linalg.softmax dimension(1) ins(%a : tensor<16x32xf32>) outs(%e : tensor<16x32xf32>) "
        "-> tensor<16x32xf32>\n  return %r : tensor<16x32xf32>\n}",
    )
    assert task.dispatch is not None
    assert [op.kind for op in task.dispatch.ops] == [
        OpKind.FILL,
        OpKind.REDUCTION,
        OpKind.FILL,
        OpKind.REDUCTION,
        OpKind.ELEMENTWISE,
    ]
    assert [op.extents for op in task.dispatch.ops] == [(16,), (16, 32), (16,), (16, 32), (16, 32)]
