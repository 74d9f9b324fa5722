"""The IR of one dispatch as plain data: which linalg ops the dispatch has and how they walk over their tensors.

The IR is read in the state that a transform script meets: after the passes that IREE runs before user configurations
are applied (``compiler/worker/preconfiguration.py``), before IREE chooses a lowering strategy.
"""

from __future__ import annotations

from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import linalg

from mlir_sched.compiler.operations import producer
from mlir_sched.errors import MlirSchedError
from mlir_sched.payload import ELEMENT_BYTES, PAD, Dispatch, LinalgOp, LinearExpr, Operand, OpKind, TensorSpec
from mlir_sched.tasks.worker.linalg_body import (
    body_names,
    gathers,
    is_multiply_accumulate,
    is_pooling,
    reads_loop_index,
)

_PLUMBING = ("linalg.", "hal.", "util.", "affine.", "iree_tensor_ext.", "iree_codegen.", "flow.")
_STORES = ("iree_tensor_ext.dispatch.tensor.store", "iree_codegen.store_to_buffer")
_NOT_LINALG = {
    "iree_linalg_ext.sort": "it sorts",
    "iree_linalg_ext.topk": "it finds the largest elements",
    "iree_linalg_ext.topk_v2": "it finds the largest elements",
    "iree_linalg_ext.arg_compare": "it finds the place of an extreme element",
    "iree_linalg_ext.scan": "it computes running totals",
    "iree_linalg_ext.fft": "it computes a Fourier transform",
    "iree_linalg_ext.scatter": "it scatters: it writes elements at computed places",
    "iree_linalg_ext.gather": "it gathers: it reads elements at computed places",
    "iree_linalg_ext.attention": "it computes attention",
    "iree_linalg_ext.online_attention": "it computes attention",
}
"""What a dispatch without a linalg op does, by the op that does it; the first one found counts."""
_QUIET = frozenset({"tensor.empty", "arith.constant", "func.return", "memref.subview"})
"""Ops that need no schedule; a view is the part of a buffer that a dispatch loads or stores, on CUDA."""


class NotTunableError(MlirSchedError):
    """The dispatch cannot be tuned; the message says why."""


class OnlyCopiesError(NotTunableError):
    """The dispatch cannot be tuned, as it computes nothing: it copies, or puts tensors together."""


def analyse(function: Any) -> Dispatch:
    """Return the ops of a dispatch's ``func.func`` in its pre-configuration state.

    Raises:
        NotTunableError: The dispatch has no linalg op on tensors, or has dynamic extents, encoded tensors or
            unsupported element types.
    """
    block = function.regions[0].blocks[0]
    operations = [op.operation for op in block]
    structured = [op for op in operations if op.name.startswith("linalg.")]
    if any(not op.results for op in structured):
        raise OnlyCopiesError("it only copies (IREE turns it into a copy of its own)")
    if not structured:
        raise _without_linalg(operations)
    position = {value: index for index, op in enumerate(structured) for value in op.results}
    ops = tuple(_linalg_op(index, op, position) for index, op in enumerate(structured))
    results = _stored(operations, position)
    if not results:
        raise _without_linalg(operations)
    return Dispatch(ops, results, tuple(op.name for op in operations if _is_other(op)))


def tensor_spec(type_: Any) -> TensorSpec:
    """Return shape and element type of a ranked tensor or scalar type.

    Raises:
        NotTunableError: The type has a dynamic dimension, an encoding or an element type that is not supported.
    """
    if not isinstance(type_, ir.RankedTensorType):
        return TensorSpec((), _element_type(type_))
    dim = dynamic_dim(type_)
    if dim is not None:
        raise NotTunableError(f"dynamic shapes are not supported yet: dimension {dim} of {type_} is dynamic")
    if type_.encoding is not None:
        raise NotTunableError("its tensors are packed by IREE's data tiling, which transform modules do not schedule")
    return TensorSpec(tuple(type_.shape), _element_type(type_.element_type))


def dynamic_dim(type_: Any) -> int | None:
    """Return the first dynamic dimension of a type, or None."""
    if not isinstance(type_, ir.RankedTensorType):
        return None
    return next((dim for dim in range(type_.rank) if type_.is_dynamic_dim(dim)), None)


def _element_type(type_: Any) -> str:
    name = str(type_)
    if name.startswith("complex"):
        raise NotTunableError(f"it computes with {name}, of which MLIR has no vectors")
    if name not in ELEMENT_BYTES:
        raise NotTunableError(f"element type {name} is not supported")
    return name


def _linalg_op(index: int, op: Any, position: dict[Any, int]) -> LinalgOp:
    attributes = linalg.get_indexing_maps(op)
    if attributes is None:
        raise NotTunableError(f"{op.name} has no indexing maps")
    maps = [ir.AffineMapAttr(attribute).value for attribute in attributes]
    loops = maps[0].n_dims
    results = [_linear_results(map_) for map_ in maps]
    operands = [_operand(value, exprs, loops, position) for value, exprs in zip(op.operands, results, strict=True)]
    inputs, outputs = operands[: -len(op.results)], operands[-len(op.results) :]
    extents = _extents(operands, loops)
    iterators = _iterator_types(op, outputs, loops)
    linear = extents is not None and all(expr is not None for exprs in results for expr in exprs)
    return LinalgOp(
        index=index,
        name=op.name,
        kind=_kind(op, operands, iterators) if linear else OpKind.OTHER,
        iterator_types=iterators,
        extents=extents or (1,) * loops,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        body=body_names(op),
    )


def _operand(value: Any, results: list[LinearExpr | None], loops: int, position: dict[Any, int]) -> Operand:
    unknown = LinearExpr((0,) * loops)
    exprs = tuple(expr or unknown for expr in results)
    return Operand(tensor_spec(value.type), exprs, position.get(value), _padded_dims(value))


def _padded_dims(value: Any) -> tuple[int, ...]:
    """Return the dimensions along which a padded value is longer than the source of its padding; none when unpadded."""
    pad = producer(value)
    if pad is None or pad.name != PAD:
        return ()
    sizes = zip(pad.operands[0].type.shape, value.type.shape, strict=True)
    return tuple(dim for dim, (before, after) in enumerate(sizes) if before != after)


def _extents(operands: list[Operand], loops: int) -> tuple[int, ...] | None:
    """Return the loops' trip counts, each the size of a tensor dimension indexed by that loop alone.

    None when some loop indexes no dimension alone.
    """
    found: dict[int, int] = {}
    for operand in operands:
        for expr, size in zip(operand.indexing_map, operand.tensor.shape, strict=True):
            if expr.is_dim:
                found.setdefault(expr.dims[0], size)
    return tuple(found[loop] for loop in range(loops)) if len(found) == loops else None


def _iterator_types(op: Any, outputs: list[Operand], loops: int) -> tuple[str, ...]:
    """Return the op's iterator types; a named op reduces over the loops its outputs do not use."""
    if "iterator_types" in op.attributes:
        return tuple(
            "reduction" if "reduction" in str(kind) else "parallel" for kind in op.attributes["iterator_types"]
        )
    parallel = {dim for operand in outputs for dim in operand.dims}
    return tuple("parallel" if loop in parallel else "reduction" for loop in range(loops))


def _kind(op: Any, operands: list[Operand], iterators: tuple[str, ...]) -> OpKind:
    if op.name == "linalg.fill":
        return OpKind.FILL
    if gathers(op):
        return OpKind.OTHER
    if "reduction" not in iterators:
        return OpKind.ELEMENTWISE
    if reads_loop_index(op):
        return OpKind.OTHER
    if _is_contraction(op, operands, iterators):
        return OpKind.CONTRACTION
    return OpKind.CONVOLUTION if _is_convolution(op, operands, iterators) else OpKind.REDUCTION


def _is_contraction(op: Any, operands: list[Operand], iterators: tuple[str, ...]) -> bool:
    """Say whether an op sums products of two tensors, and each of its loops is a batch, m, n or k loop."""
    if len(operands) != 3 or not all(operand.is_projected_permutation for operand in operands):
        return False
    lhs, rhs, out = (set(operand.dims) for operand in operands)
    reductions = {loop for loop, kind in enumerate(iterators) if kind == "reduction"}
    return reductions == (lhs & rhs) - out and out <= lhs | rhs and is_multiply_accumulate(op)


def _is_convolution(op: Any, operands: list[Operand], iterators: tuple[str, ...]) -> bool:
    """Say whether an op sums products of a filter and an image, and reads the image through windows in rising order.

    A pooling counts as a convolution: its second operand, which only gives the size of the windows, takes the filter's
    place.
    """
    if len(operands) != 3 or not operands[2].is_projected_permutation:
        return False
    first, second, result = operands
    image, kernel = (second, first) if first.is_projected_permutation else (first, second)
    windows = any(expr.dims and not expr.is_dim for expr in image.indexing_map)
    rising = all(number >= 0 for expr in image.indexing_map for number in (*expr.coefficients, expr.constant))
    if not (windows and rising and kernel.is_projected_permutation):
        return False
    inputs, shared, out = {*image.dims, *kernel.dims}, {*image.dims} & {*kernel.dims}, {*result.dims}
    reductions = {loop for loop, kind in enumerate(iterators) if kind == "reduction"}
    pools = image is first and is_pooling(op)
    return reductions == shared - out and out <= inputs and (pools or is_multiply_accumulate(op))


def _stored(operations: list[Any], position: dict[Any, int]) -> tuple[int, ...]:
    """Return the indices of the ops whose results the dispatch stores, ascending."""
    stored = {position.get(op.operands[0]) for op in operations if op.name in _STORES}
    return tuple(sorted(index for index in stored if index is not None))


def _is_other(op: Any) -> bool:
    if op.name.startswith(_PLUMBING) or op.name in _QUIET:
        return False
    values = (*op.operands, *op.results)
    return bool(op.regions) or any(isinstance(value.type, ir.ShapedType) for value in values)


def _without_linalg(operations: list[Any]) -> NotTunableError:
    """Return why a dispatch cannot be tuned whose result no linalg op makes."""
    others = sorted({op.name for op in operations if _is_other(op)})
    known = [what for name, what in _NOT_LINALG.items() if name in others]
    if known:
        return NotTunableError(f"{known[0]} ({', '.join(others)}), for which there is no transform module")
    moves = all(name.startswith("tensor.") for name in others) and not any(map(_computes, operations))
    kind = OnlyCopiesError if moves else NotTunableError
    only = f", only {', '.join(others)}" if others else " (a copy)"
    return kind(f"no linalg op makes its result{only}")


def _computes(op: Any) -> bool:
    """Say whether an op is a linalg op that computes elements, and does not only move them."""
    return bool(op.name.startswith("linalg.")) and not (op.regions and not body_names(op))


def _linear_results(affine_map: Any) -> list[LinearExpr | None]:
    """Return each result of an affine map as coefficients over the map's dims; None for a result that is not linear."""
    return [_linear(expr, affine_map.n_dims) for expr in affine_map.results]


def _linear(expr: Any, dims: int) -> LinearExpr | None:
    if isinstance(expr, ir.AffineConstantExpr):
        return LinearExpr((0,) * dims, expr.value)
    if isinstance(expr, ir.AffineDimExpr):
        return LinearExpr(tuple(int(dim == expr.position) for dim in range(dims)))
    if isinstance(expr, ir.AffineAddExpr):
        return _add(_linear(expr.lhs, dims), _linear(expr.rhs, dims))
    if isinstance(expr, ir.AffineMulExpr):
        return _multiply(_linear(expr.lhs, dims), _linear(expr.rhs, dims))
    return None


def _add(lhs: LinearExpr | None, rhs: LinearExpr | None) -> LinearExpr | None:
    if lhs is None or rhs is None:
        return None
    coefficients = tuple(a + b for a, b in zip(lhs.coefficients, rhs.coefficients, strict=True))
    return LinearExpr(coefficients, lhs.constant + rhs.constant)


def _multiply(lhs: LinearExpr | None, rhs: LinearExpr | None) -> LinearExpr | None:
    if lhs is None or rhs is None:
        return None
    if rhs.dims:
        lhs, rhs = rhs, lhs
    if rhs.dims:
        return None
    return LinearExpr(tuple(c * rhs.constant for c in lhs.coefficients), lhs.constant * rhs.constant)
