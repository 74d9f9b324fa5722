"""A dispatch of which candidates were measured on a machine, as far as it is known before these are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from mlir_sched.payload import ELEMENT_BITS, Dispatch, LinalgOp, OpKind, family_of
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target

if TYPE_CHECKING:
    from mlir_sched.corpus.measured_task import MeasuredTask


@dataclass(frozen=True)
class KnownTask(ABC):
    """A dispatch of which candidates were measured on a machine; :attr:`as_measured` has these.

    Attributes:
        key, name: As of ``Task``.
        target: The machine, with the threads that programs ran on.
        context: What the times depend on beside the task (``measuring_context``).

    Raises:
        ValueError: Nothing can be derived from such a dispatch, or there is no such machine.
    """

    key: str
    name: str
    dispatch: Dispatch
    target: Target
    context: str

    def __post_init__(self) -> None:
        if self.target.cores < 1:
            raise ValueError(f"a target has {self.target.cores} cores")
        _check(self.dispatch)

    @property
    @abstractmethod
    def as_measured(self) -> MeasuredTask | None:
        """The task with its candidates, which are read when they are first asked for; None where there is none.

        Raises:
            UserError: They cannot be read.
        """

    @cached_property
    def family(self) -> str:
        """The family of the dispatch (:func:`~mlir_sched.payload.family_of`)."""
        return family_of(self.dispatch)

    @cached_property
    def sketches(self) -> tuple[str, ...]:
        """Names of the sketches that the default space has for the dispatch today."""
        return self.space.sketches

    @cached_property
    def space(self) -> DesignSpace:
        """The default space of the dispatch on its target."""
        return DesignSpace(default_space(self.target), self.dispatch, self.target)


@lru_cache(maxsize=8)
def default_space(target: Target) -> Space:
    """Return the default space of a target; tasks share the few spaces that there are."""
    return Space.default(target)


def _check(dispatch: Dispatch) -> None:
    """Raise a ValueError for what no dispatch looks like, whose families, sketches and features cannot be found."""
    if not dispatch.ops or not dispatch.results or not set(dispatch.results) <= set(range(len(dispatch.ops))):
        raise ValueError("not a dispatch: it has no ops, or stores the results of others")
    for index, op in enumerate(dispatch.ops):
        if problem := next(_problems(index, op), ""):
            raise ValueError(f"not a dispatch: op {index}, {op.name}, {problem}")


def _problems(index: int, op: LinalgOp) -> Iterator[str]:
    if op.index != index:
        yield "has another number"
    if len(op.iterator_types) != len(op.extents) or any(extent < 1 for extent in op.extents):
        yield "has loops without an extent"
    if not set(op.iterator_types) <= {"parallel", "reduction"}:
        yield "has loops of no known kind"
    if not op.outputs or (op.kind in (OpKind.CONTRACTION, OpKind.CONVOLUTION) and len(op.inputs) < 2):
        yield "lacks operands"
    for operand in op.operands:
        tensor, exprs = operand.tensor, operand.indexing_map
        if len(exprs) != len(tensor.shape) or any(len(expr.coefficients) != len(op.extents) for expr in exprs):
            yield "has an operand of another rank"
        if tensor.element_type not in ELEMENT_BITS or any(size < 1 for size in tensor.shape):
            yield "has an operand of no known size"
        if operand.producer is not None and not 0 <= operand.producer < index:
            yield "reads what is made later"
        if any(not 0 <= dim < len(tensor.shape) for dim in operand.padded):
            yield "pads a dimension that is not there"
