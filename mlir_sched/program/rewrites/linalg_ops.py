"""Builders of linalg ops on static tensors, at the current insertion point, and readers of such ops."""

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any

import numpy as np
from iree.compiler import ir
from iree.compiler.dialects import arith, linalg, tensor

from mlir_sched.compiler.operations import captured, producer, walk

Reassociation = Sequence[Sequence[int]]
COLLAPSE, EXPAND, CONCAT, CAST = "tensor.collapse_shape", "tensor.expand_shape", "tensor.concat", "tensor.cast"
GENERIC, SLICE, BARRIER = "linalg.generic", "tensor.extract_slice", "iree_tensor_ext.compute_barrier.start"
EMPTY, TRANSPOSE = "tensor.empty", "linalg.transpose"


def product_and_sum(image: Any, taps: Any, image_dims: str, tap_dims: str, result_dims: str) -> Any:
    """Return the sums of products over the loops that the result lacks, as in ``einsum``; one letter per loop."""
    sizes = dict(zip(image_dims + tap_dims, [*image.type.shape, *taps.type.shape], strict=True))
    loops = result_dims + "".join(sorted(set(sizes) - set(result_dims)))
    element = image.type.element_type
    init = zeros([sizes[d] for d in result_dims], element)
    maps = [dims_map(len(loops), map(loops.index, dims)) for dims in (image_dims, tap_dims, result_dims)]
    kinds = ["parallel" if loop in result_dims else "reduction" for loop in loops]
    return generic([image, taps], init, maps, kinds, multiply_add)


def multiply_add(x: Any, y: Any, total: Any) -> Any:
    """Return ``total + x * y``, the body of a sum of products."""
    return arith.addf(total, arith.mulf(x, y))


def generic(
    inputs: Sequence[Any], init: Any, maps: Sequence[ir.AffineMap], kinds: Sequence[str], body: Callable[..., Any]
) -> Any:
    """Return the result of a ``linalg.generic`` whose body gets one scalar per operand and returns one."""
    (result,) = generic_of_several(inputs, [init], maps, kinds, lambda *scalars: [body(*scalars)])
    return result


def generic_of_several(
    inputs: Sequence[Any],
    inits: Sequence[Any],
    maps: Sequence[ir.AffineMap],
    kinds: Sequence[str],
    body: Callable[..., Sequence[Any]],
) -> list[Any]:
    """Return the results of a ``linalg.generic`` whose body gets one scalar per operand and returns one per init."""
    attributes = {
        "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps]),
        "iterator_types": ir.ArrayAttr.get([ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), len(inits)]),
    }
    operands, types = [*inputs, *inits], [init.type for init in inits]
    op = ir.Operation.create("linalg.generic", results=types, operands=operands, attributes=attributes, regions=1)
    block = op.regions[0].blocks.append(*[value.type.element_type for value in operands])
    with ir.InsertionPoint(block):
        linalg.yield_(list(body(*block.arguments)))
    return list(op.results)


def dims_map(loops: int, dims: Iterable[int | None]) -> ir.AffineMap:
    """Return the indexing map from ``loops`` loops to the loops ``dims``, in their order; None stands for a zero."""
    zero = ir.AffineExpr.get_constant(0)
    return ir.AffineMap.get(loops, 0, [zero if dim is None else ir.AffineExpr.get_dim(dim) for dim in dims])


def maps_of(op: Any) -> list[ir.AffineMap]:
    """Return the indexing maps of an op of linalg, or of another op that has some as an attribute; else none."""
    if "indexing_maps" in op.attributes:
        found = op.attributes["indexing_maps"]
    else:
        found = linalg.get_indexing_maps(op) if op.name.startswith("linalg.") else None
    return [ir.AffineMapAttr(each).value for each in found or ()]


def loops_of(map_: ir.AffineMap) -> tuple[int | None, ...]:
    """Return the loop that alone walks each dimension of an operand; None where several do, or none."""
    return tuple(expr.position if isinstance(expr, ir.AffineDimExpr) else None for expr in map_.results)


def depends_on(expr: ir.AffineExpr, loop: ir.AffineDimExpr) -> bool:
    """Say whether an expression of an indexing map depends on a loop."""
    if isinstance(expr, ir.AffineBinaryExpr):
        return depends_on(expr.lhs, loop) or depends_on(expr.rhs, loop)
    return bool(expr == loop)


def copied(op: Any, operands: Sequence[Any]) -> Any:
    """Return a copy of an op with other operands."""
    copy = op.clone()
    for place, operand in enumerate(operands):
        copy.operands[place] = operand
    return copy


def copied_with_constants(op: Any, operands: Sequence[Any]) -> Any:
    """Return a copy of an op with other operands, and with copies of the constants that its bodies use from outside."""
    outside = _copied_constants(op)
    copy = copied(op, operands)
    for inner in walk(copy):
        for place, operand in enumerate(inner.operands):
            if operand in outside:
                inner.operands[place] = outside[operand]
    return copy


def _copied_constants(op: Any) -> dict[Any, Any]:
    """Return a copy of every constant that the bodies of an op use from outside."""
    return {value: copied(producer(value), []).result for value in dict.fromkeys(captured(op))}


def resized(op: Any, operands: Sequence[Any]) -> Any:
    """Return the result of a copy of a structured op with operands of other sizes."""
    copy = copied(op, operands)
    copy.results[0].set_type(operands[-1].type)
    return copy.results[0]


def is_static(value: Any) -> bool:
    """Say whether a value is a tensor whose sizes are known."""
    return isinstance(value.type, ir.RankedTensorType) and bool(value.type.has_static_shape)


def is_elementwise(op: Any) -> bool:
    """Say whether a generic op computes every element of its only result from elements of its operands."""
    if op.name != GENERIC or len(op.results) != 1 or "reduction" in str(op.attributes["iterator_types"]):
        return False
    return bool(maps_of(op)[-1] == ir.AffineMap.get_identity(op.results[0].type.rank))


def counts(op: Any) -> bool:
    """Say whether the body of an op reads the numbers of its loops."""
    return any(inner.name == "linalg.index" for inner in walk(op))


def copied_body(op: Any, scalars: Sequence[Any]) -> Any:
    """Return what the body of a structured op makes of scalars, by copies of its ops and of constants from outside."""
    *inner, end = op.regions[0].blocks[0]
    values = dict(zip(op.regions[0].blocks[0].arguments, scalars, strict=True)) | _copied_constants(op)
    for one in inner:
        made = copied(one.operation, [values[operand] for operand in one.operation.operands])
        values |= dict(zip(one.operation.results, made.results, strict=True))
    return values[end.operation.operands[0]]


def zeros(shape: Sequence[int], element: Any) -> Any:
    """Return a tensor of zeros."""
    return linalg.fill(zero(element), outs=[tensor.empty(shape, element)])


def zero(element: Any) -> Any:
    """Return a zero of a type of floats or integers."""
    if isinstance(element, ir.IntegerType):
        return arith.constant(element, ir.IntegerAttr.get(element, 0))
    return number(element, 0.0)


def number(element: Any, value: float) -> Any:
    """Return a constant of a float type."""
    return arith.constant(element, ir.FloatAttr.get(element, value))


def index(value: int) -> Any:
    """Return an index constant."""
    return arith.constant(ir.IndexType.get(), value)


def sizes_of(value: Any) -> list[Any]:
    """Return the sizes of a tensor: numbers, or values of the program where they are not known."""
    kind = value.type
    dims = range(kind.rank)
    return [tensor.dim(value, index(dim)) if kind.is_dynamic_dim(dim) else kind.shape[dim] for dim in dims]


def of_any_size(kind: Any) -> Any:
    """Return the type of tensors with the dims of one element that another type of tensors has; all others vary."""
    sizes = [1 if size == 1 else ir.ShapedType.get_dynamic_size() for size in kind.shape]
    return ir.RankedTensorType.get(sizes, kind.element_type)


def slice_of(source: Any, offsets: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Return a rectangular part of a tensor; its offsets are numbers, or values of the program."""
    if list(sizes) == list(source.type.shape):
        return source
    result = ir.RankedTensorType.get(list(sizes), source.type.element_type)
    varying = [offset for offset in offsets if isinstance(offset, ir.Value)]
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    fixed = [unknown if isinstance(offset, ir.Value) else offset for offset in offsets]
    return tensor.extract_slice(result, source, varying, [], [], fixed, sizes, [1] * len(sizes))


def transposed(source: Any, order: Sequence[int]) -> Any:
    """Return a tensor with its dims in another order; itself where the order is the same."""
    if list(order) == sorted(order):
        return source
    sizes = sizes_of(source)
    empty = tensor.empty([sizes[dim] for dim in order], source.type.element_type)
    return linalg.transpose(source, outs=[empty], permutation=list(order)).operation.result


def added(init: Any, sums: Any, order: Sequence[int]) -> Any:
    """Return ``init`` plus sums whose dims are those of ``init`` in another order."""
    maps = [dims_map(len(order), order), ir.AffineMap.get_identity(len(order))]
    return generic([sums], init, maps, ["parallel"] * len(order), lambda new, total: arith.addf(total, new))


def with_parts(value: Any, parts: Sequence[Any], dims: Sequence[int], combine: Callable[..., Any]) -> Any:
    """Return a tensor, each of whose elements is computed from that of a value and those of parts.

    Args:
        value: A tensor of the same shape.
        parts: Tensors with some of its dims.
        dims: Which ones.
        combine: Returns what the scalars make.
    """
    kind = value.type
    every = ir.AffineMap.get_identity(kind.rank)
    maps = [every, *[dims_map(kind.rank, dims)] * len(parts), every]
    empty = tensor.empty(sizes_of(value), kind.element_type)
    return generic([value, *parts], empty, maps, ["parallel"] * kind.rank, lambda *scalars: combine(*scalars[:-1]))


def concatenated(values: Sequence[Any], dim: int) -> Any:
    """Return tensors joined along a dim; the only one as it is."""
    if len(values) == 1:
        return values[0]
    shape = list(values[0].type.shape)
    shape[dim] = sum(value.type.shape[dim] for value in values)
    return tensor.concat(ir.RankedTensorType.get(shape, values[0].type.element_type), dim, list(values))


def gathered(source: Any, dims: Sequence[int], places: np.ndarray[Any, Any]) -> Any:
    """Return a tensor of the sizes of another one, with its elements at other places along one dim.

    Args:
        source: The other tensor.
        dims: The dims that the place depends on; along the last one elements are read at other places.
        places: Where each element is read, over these dims.
    """
    kind = source.type
    maps = [dims_map(kind.rank, dims), ir.AffineMap.get_identity(kind.rank)]

    def element(place: Any, _: Any) -> Any:
        at = [linalg.IndexOp(dim).result for dim in range(kind.rank)]
        at[dims[-1]] = arith.index_cast(ir.IndexType.get(), place)
        return tensor.extract(source, at)

    init = tensor.empty(kind.shape, kind.element_type)
    return generic([_places(places)], init, maps, ["parallel"] * kind.rank, element)


def searched(source: Any, dim: int, places: np.ndarray[Any, Any]) -> Any:
    """Return what :func:`gathered` does, by an op that walks along the whole dim for each element.

    IREE fuses it into no op that reads it, so that constants stay constants.

    Args:
        source: The other tensor.
        dim: The dim along which elements are read at other places.
        places: Where each element is read, along this dim.
    """
    kind = source.type
    result, walked = [*range(kind.rank)], kind.rank
    read = [walked if each == dim else each for each in result]

    def element(place: Any, value: Any, found: Any) -> Any:
        here = arith.index_cast(place.type, linalg.IndexOp(walked).result)
        return arith.select(arith.cmpi(arith.CmpIPredicate.eq, place, here), value, found)

    maps = [dims_map(kind.rank + 1, each) for each in ([dim], read, result)]
    init, kinds = zeros(kind.shape, kind.element_type), ["parallel"] * kind.rank + ["reduction"]
    return generic([_places(places), source], init, maps, kinds, element)


def constant(numbers: np.ndarray[Any, Any], element: Any) -> Any:
    """Return a tensor of integers of a type."""
    values = np.ascontiguousarray(numbers, dtype=f"i{element.width // 8}")
    kind = ir.RankedTensorType.get(list(values.shape), element)
    return arith.constant(kind, ir.DenseElementsAttr.get(values, type=kind))


def _places(numbers: np.ndarray[Any, Any]) -> Any:
    """Return a tensor of 32-bit integers."""
    return constant(numbers, ir.IntegerType.get_signless(32))


def barrier(value: Any) -> Any:
    """Return a tensor that IREE makes whole and in its own layout: it is fused into no op that reads it."""
    return ir.Operation.create(BARRIER, operands=[value], results=[value.type]).result


def collapse(source: Any, groups: Reassociation) -> Any:
    """Return a tensor with each group of adjacent dims merged into one dim."""
    shape = [prod(source.type.shape[d] for d in group) for group in groups]
    return tensor.collapse_shape(
        ir.RankedTensorType.get(shape, source.type.element_type), source, _reassociation(groups)
    )


def expand(source: Any, groups: Reassociation, shape: Sequence[int]) -> Any:
    """Return a tensor with each dim of the source split into a group of adjacent dims of ``shape``."""
    result = ir.RankedTensorType.get(list(shape), source.type.element_type)
    return tensor.expand_shape(result, source, _reassociation(groups), [], shape)


def with_unit_dims(source: Any, shape: Sequence[int]) -> Any:
    """Return a tensor as one of another shape, which differs from its own in dims of one element alone."""
    own = list(source.type.shape)
    if own == list(shape):
        return source
    flat = collapse(source, _around(own)) if 1 in own else source
    return expand(flat, _around(shape), shape) if 1 in shape else flat


def groups_of(reshape: Any) -> list[list[int]]:
    """Return which dims a reshape makes one, or which it makes of each."""
    return [[ir.IntegerAttr(dim).value for dim in ir.ArrayAttr(group)] for group in reshape.attributes["reassociation"]]


def numbers_of(op: Any, name: str) -> list[int]:
    """Return the numbers of an attribute of an op, such as ``static_sizes`` or ``permutation``."""
    return list(ir.DenseI64ArrayAttr(op.attributes[name]))


def region_of(op: Any) -> tuple[list[int], list[int], list[int]]:
    """Return the offsets, sizes and strides of what an op takes from a tensor, or inserts into one."""
    offsets, sizes, strides = (numbers_of(op, f"static_{name}") for name in ("offsets", "sizes", "strides"))
    return offsets, sizes, strides


def dim_of(op: Any) -> int:
    """Return the dim that an op joins tensors along, or counts along."""
    return int(ir.IntegerAttr(op.attributes["dim"]).value)


def _around(shape: Sequence[int]) -> list[range]:
    """Return groups of adjacent dims, each of which has one dim of more than one element."""
    wide = [dim for dim, size in enumerate(shape) if size != 1]
    return [*map(range, [0, *wide[1:]], [*wide[1:], len(shape)])] if wide else []


def _reassociation(groups: Reassociation) -> ir.ArrayAttr:
    i64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get([ir.ArrayAttr.get([ir.IntegerAttr.get(i64, d) for d in group]) for group in groups])
