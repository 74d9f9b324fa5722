"""What ops read of one another, and how a script compares ops and what links them, each once.

A script finds the ops by their places in the program. Where none of them makes what they read, it sees whether several
read the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from iree.compiler import ir
from iree.compiler.dialects import transform

from mlir_sched.compiler.operations import captured
from mlir_sched.program.rewrites.channels.gathers import indices_key, is_gather, match_gather, read_of, source_handle
from mlir_sched.program.rewrites.layout.forms import form_of, match_form
from mlir_sched.program.rewrites.linalg_ops import GENERIC
from mlir_sched.program.rewrites.replacement import match_dag, match_type, operand_of, require_same, result_of


class Link(NamedTuple):
    """A value as one that an op reads.

    Attributes:
        op: The op.
        place: Which of its operands; None for the tensor that the body of a gather reads.
    """

    op: Any
    place: int | None

    @property
    def value(self) -> Any:
        """The value."""
        return read_of(self.op).operands[0] if self.place is None else self.op.operands[self.place]

    @property
    def form(self) -> Hashable:
        """A key, equal for links that a script finds alike from their ops."""
        return self.place

    def handle(self, op: Any) -> Any:
        """Emit a handle on the value, from one on the op."""
        return source_handle(op) if self.place is None else operand_of(op, self.place)


class Made(NamedTuple):
    """A value as a result of an op.

    Attributes:
        op: The op.
        number: Which of its results.
    """

    op: Any
    number: int

    @property
    def form(self) -> Hashable:
        """A key, equal for results that a script finds alike from their ops."""
        return "made", self.number

    def handle(self, op: Any) -> Any:
        """Emit a handle on the value, from one on the op."""
        return result_of(op, self.number)


class Tie(NamedTuple):
    """What has to be of a value that an op reads.

    Attributes:
        link: The value.
        other: The same value, as another op has it; None where none does.
    """

    link: Link
    other: Link | Made | None

    @property
    def form(self) -> tuple[Hashable, ...]:
        """A key, equal for ties that are compared alike."""
        return self.link.form, self.other and self.other.form, str(self.link.value.type)


def compare(ops: Sequence[Any], links: Iterable[Link], handles: Mapping[Any, Any]) -> None:
    """Emit the comparison of ops, each once, in one loop over all that are alike.

    Args:
        ops: The ops.
        links: The values that they read which have to be what they are.
        handles: Handles on the ops.
    """
    ties, alike = _ties(ops, links), dict[Hashable, list[Any]]()
    for op in ops:
        alike.setdefault((*_form(op), *(tie.form for tie in ties[op])), []).append(op)
    for same in alike.values():
        rows = [[handles[op], *(handles[tie.other.op] for tie in ties[op] if tie.other)] for op in same]
        each = transform.ForeachOp([], [transform.merge_handles(column) for column in zip(*rows, strict=True)])
        with ir.InsertionPoint(each.body):
            _compare(same[0], ties[same[0]], *each.bodyTargets)
            transform.YieldOp()


def _ties(ops: Sequence[Any], links: Iterable[Link]) -> Mapping[Any, list[Tie]]:
    """Return what has to be of the values that every op reads."""
    made = {result: Made(op, number) for op in ops for number, result in enumerate(op.results)}
    found: dict[Any, list[Tie]] = {op: [] for op in ops}
    first: dict[Any, Link] = {}
    for link in dict.fromkeys(links):
        other = made.get(link.value) or first.setdefault(link.value, link)
        found[link.op].append(Tie(link, None if other is link else other))
    return found


def _form(op: Any) -> tuple[Hashable, ...]:
    """Return a key, equal for ops that are compared alike."""
    types = (str(value.type) for value in (*op.operands, *op.results))
    return *form_of(op), *types, *(indices_key(op) if is_gather(op) else ())


def _compare(op: Any, ties: Sequence[Tie], handle: Any, *others: Any) -> None:
    """Emit the comparison of an op, and of what has to be of the values that it reads.

    Args:
        op: The op.
        ties: What has to be of the values.
        handle: A handle on the op.
        others: Handles on the other ops of the ties.
    """
    _match(op, handle)
    match_type(result_of(handle), op.results[0].type)
    left = iter(others)
    for tie in ties:
        value = tie.link.handle(handle)
        match_type(value, tie.link.value.type)
        if tie.other:
            require_same(value, tie.other.handle(next(left)))


def _match(op: Any, handle: Any) -> None:
    """Emit the comparison of an op: as a whole, where its body uses nothing from outside, else of its form."""
    if is_gather(op):
        match_gather(handle, op)
    elif op.name == GENERIC and not captured(op):
        match_dag(op, list(op.operands), handle)
    else:
        match_form(handle, op)
