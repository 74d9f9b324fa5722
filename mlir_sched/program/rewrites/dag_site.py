"""Sites of several ops: a last op with some of those that make its operands, which are replaced together.

What leads from the last op to another one is a path: one of its operands, one of those of what makes it, and so on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from iree.compiler import ir
from iree.compiler.dialects import transform

from mlir_sched.compiler.operations import captured, producer
from mlir_sched.library.matcher import append_comparison_with_constants
from mlir_sched.program.rewrites.replacement import (
    append_trial,
    attributes_of,
    match_dag,
    operand_of,
    passing,
    producer_of,
    require_at_most,
    require_number,
)
from mlir_sched.program.rewrites.site_rewrite import OpSite, SiteRewrite
from mlir_sched.program.rewrites.walked_program import WalkedProgram

Path = tuple[int, ...]
"""The way from the last op to a value; the empty one leads to the last op itself."""


class DagSite(ABC):
    """A last op with those in front of it that a replacement computes, too."""

    @property
    @abstractmethod
    def root(self) -> Any:
        """The last op; its only result is replaced."""

    @property
    @abstractmethod
    def along(self) -> Path:
        """The way to the first op of a chain that ends with the last op; each is read by the next one alone."""

    @property
    @abstractmethod
    def ops(self) -> list[Path]:
        """The ways to all ops that a matcher compares, the last op first."""

    @property
    @abstractmethod
    def leaves(self) -> list[Path]:
        """The ways to the values that the replacement is computed from."""

    @property
    def result(self) -> Any:
        """The value that is replaced."""
        return self.root.results[0]

    @property
    def inputs(self) -> list[Any]:
        """The values that the replacement is computed from."""
        return [_value_at(self.root, way) for way in self.leaves]

    @property
    def kind(self) -> tuple[Any, ...]:
        """A key, equal for sites that the same matcher finds, and that the same replacement is right for."""
        return *self.ops, *(OpSite(op).kind for op in self.made_of(self.root))

    @property
    def readers(self) -> dict[Path, int]:
        """How many ops may read the result of each op that is gone, by the ways to these.

        By default these are the ops on the way to the first one, each with one reader.
        """
        return {self.along[: number + 1]: 1 for number in range(len(self.along))}

    @property
    def gone(self) -> list[Any]:
        """The ops that nothing reads once the site is replaced."""
        return [self.root, *(_producer_at(self.root, way) for way in self.readers)]

    @cached_property
    def with_constants(self) -> Mapping[Path, Any]:
        """The ops whose bodies use constants from outside, by the ways to them."""
        return {way: op for way, op in zip(self.ops, self.made_of(self.root), strict=True) if captured(op)}

    def seen_from(self, root: Any) -> tuple[Any, ...]:
        """Return what a matcher of the site compares of a last op, and of what makes that op's operands."""
        return *self.ops, *map(seen, self.made_of(root))

    def made_of(self, root: Any) -> list[Any]:
        """Return the ops that the ways of :attr:`ops` lead to from a last op; none where one of the ways ends early."""
        found = [root, *(_producer_at(root, way) for way in self.ops[1:])]
        return [] if any(op is None for op in found) else found


D = TypeVar("D", bound=DagSite)


class DagRewrite(SiteRewrite[D]):
    """Replaces the results of last ops, whose other ops are gone then."""

    def append_kind(self, library: ir.Module, symbol: str, site: D) -> None:
        """Append the replacement of a kind, its matcher, and a trial of what no matcher may contain."""
        super().append_kind(library, symbol, site)
        if site.with_constants:
            append_trial(library, _trial(f"match_{symbol}"), lambda root: _compare_constants(root, site))

    def find(self, module: Any, site: D, matcher: str) -> Any:
        """Emit a handle on the last ops of all sites of a kind, once what was replaced is gone."""
        transform.ApplyDeadCodeEliminationOp(module)
        found = super().find(module, site, matcher)
        return passing(found, _trial(matcher)) if site.with_constants else found

    def match(self, root: Any, site: D) -> None:
        """Emit the comparison of all ops of a site, but of bodies that use constants from outside."""
        transform.MatchOperationNameOp(root, [site.root.name])
        handles = Handles(root)
        for way, op in zip(site.ops, site.made_of(site.root), strict=True):
            if way in site.with_constants:
                transform.MatchOperationNameOp(handles.producer(way), [op.name])
            else:
                match_dag(op, list(op.operands), handles.producer(way))

    def inputs(self, op: Any, site: D) -> list[Any]:
        """Emit handles on the leaves; fail where something else reads what the chain goes through."""
        handles = Handles(op)
        for way, most in site.readers.items():
            found = transform.get_consumers_of_result(transform.AnyOpType.get(), handles.producer(way), 0)
            require_number(found, 1) if most == 1 else require_at_most(found, most)
        return list(map(handles.value, site.leaves))


def _trial(matcher: str) -> str:
    """Return the symbol of the trial that goes with a matcher."""
    return f"{matcher}_with_constants"


def _compare_constants(root: Any, site: DagSite) -> Any:
    """Emit the comparison of the bodies that use constants from outside, and return the handle on the last op."""
    handles = Handles(root)
    for way, op in site.with_constants.items():
        append_comparison_with_constants(handles.producer(way), op)
    return root


class Handles:
    """Handles on what ways from a last op lead to, each emitted once."""

    def __init__(self, root: Any) -> None:
        self._made: dict[Path, Any] = {(): root}

    def producer(self, way: Path) -> Any:
        """Emit a handle on the op that a way leads to."""
        if way not in self._made:
            self._made[way] = producer_of(self.producer(way[:-1]), way[-1])
        return self._made[way]

    def value(self, way: Path) -> Any:
        """Emit a handle on the value that a way leads to."""
        return operand_of(self.producer(way[:-1]), way[-1])


def found_again(found: Sequence[D], program: WalkedProgram, taken: Collection[Any] = ()) -> Iterator[D]:
    """Yield the sites, but those of kinds whose matcher would find something else, too.

    Args:
        found: The sites. One that ends in the middle of another one stands behind that: what was replaced matches
            nothing.
        program: The program.
        taken: Ops that are gone before.
    """
    gone, kinds = {*taken}, dict[Any, list[D]]()
    for site in found:
        kinds.setdefault(site.kind, []).append(site)
    for first, *others in kinds.values():
        wanted = first.seen_from(first.root)
        alike = program.known(_alike)[seen(first.root)]
        matched = {op for op in alike if op not in gone and first.seen_from(op) == wanted}
        if matched == {site.root for site in (first, *others)}:
            gone |= {op for site in (first, *others) for op in site.gone}
            yield from (first, *others)


def _alike(program: WalkedProgram) -> Mapping[Any, list[Any]]:
    """Return the ops that make one tensor, by what a matcher compares of them."""
    found: dict[Any, list[Any]] = {}
    for op in program.ops:
        if len(op.results) == 1 and isinstance(op.results[0].type, ir.RankedTensorType):
            found.setdefault(seen(op), []).append(op)
    return found


def _producer_at(root: Any, way: Path) -> Any:
    """Return the op that a way leads to; None where there is none."""
    value = _value_at(root, way)
    return None if value is None else producer(value)


def _value_at(root: Any, way: Path) -> Any:
    """Return the value that a way leads to; None where there is none."""
    op = root if len(way) == 1 else _producer_at(root, way[:-1])
    return op.operands[way[-1]] if op is not None and way[-1] < len(op.operands) else None


def seen(op: Any) -> tuple[Any, ...]:
    """Return what a matcher compares of an op, or less than that; matched ops have equal data.

    In a body that uses constants from outside, a matcher sees these, but no positions of arguments
    (``library/matcher.py``).
    """
    name, attributes, body, *types = OpSite(op).kind
    return name, attributes, _yielded(op) if captured(op) else body, *types


def _yielded(op: Any) -> tuple[Any, ...]:
    """Return what makes the values that the body of an op yields."""
    *inner, end = [one.operation for one in op.regions[0].blocks[0]]

    def made(value: Any) -> tuple[Any, ...]:
        by = producer(value)
        if by is None or (by not in inner and by.name != "arith.constant"):
            return ()
        return by.name, attributes_of(by), *map(made, by.operands)

    return tuple(map(made, end.operands))
