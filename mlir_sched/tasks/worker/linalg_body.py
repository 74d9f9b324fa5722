"""Questions about the scalar body of a structured op."""

from typing import Any

from mlir_sched.compiler.operations import producer

_CASTS = frozenset(
    {"arith.extf", "arith.extsi", "arith.extui", "arith.sitofp", "arith.uitofp", "arith.truncf", "arith.trunci"}
)
_MULTIPLY_ADD = {"arith.addf": "arith.mulf", "arith.addi": "arith.muli"}
_COMBINE = frozenset(
    {"arith.addf", "arith.addi", "arith.maximumf", "arith.maxnumf", "arith.minimumf", "arith.minnumf"}
    | {f"arith.{which}{sign}i" for which in ("max", "min") for sign in "su"}
)
_INDEX, _GATHER = "linalg.index", "tensor.extract"


def body_names(op: Any) -> tuple[str, ...]:
    """Return the names of the body's scalar ops in order, without constants and the yield."""
    names = [inner.operation.name for inner in _block(op)][:-1]
    return tuple(name for name in names if name != "arith.constant")


def gathers(op: Any) -> bool:
    """Say whether the body reads elements at computed places, which the indexing maps do not tell."""
    return _GATHER in body_names(op)


def reads_loop_index(op: Any) -> bool:
    """Say whether the body computes with loop indices."""
    return _INDEX in body_names(op)


def is_multiply_accumulate(op: Any) -> bool:
    """Say whether the body is ``out + cast(a) * cast(b)`` with the two inputs as factors (casts optional)."""
    lhs, rhs, out = _block(op).arguments
    total = producer(_block(op).operations[len(_block(op).operations) - 1].operation.operands[0])
    if total is None or total.name not in _MULTIPLY_ADD:
        return False
    products = [value for value in total.operands if value != out]
    if len(products) != 1:
        return False
    product = producer(products[0])
    if product is None or product.name != _MULTIPLY_ADD[total.name]:
        return False
    factors = [_through_casts(value) for value in product.operands]
    return factors in ([lhs, rhs], [rhs, lhs])


def is_pooling(op: Any) -> bool:
    """Say whether the body combines the result with its first input alone: a sum, a maximum or a minimum."""
    image, *_, out = _block(op).arguments
    total = producer(_block(op).operations[len(_block(op).operations) - 1].operation.operands[0])
    return total is not None and total.name in _COMBINE and list(total.operands) in ([image, out], [out, image])


def _block(op: Any) -> Any:
    return op.regions[0].blocks[0]


def _through_casts(value: Any) -> Any:
    defining = producer(value)
    while defining is not None and defining.name in _CASTS:
        value = defining.operands[0]
        defining = producer(value)
    return value
