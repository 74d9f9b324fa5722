"""Sites of several ops: a last op with some of those that make its operands, which are replaced together.

What leads from the last op to another one is a path: one of its operands, one of those of what makes it, and so on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from iree.compiler.dialects import transform

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.replacement import match_dag, operand_of, producer_of, require_number
from mlir_sched.program.rewrites.site_rewrite import OpSite, SiteRewrite

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
        return self.seen_from(self.root)

    def seen_from(self, root: Any) -> tuple[Any, ...]:
        """Return what a matcher of the site compares of a last op, and of what makes that op's operands."""
        return *self.ops, *(OpSite(op).kind for op in self.made_of(root))

    def made_of(self, root: Any) -> list[Any]:
        """Return the ops that the ways of :attr:`ops` lead to from a last op; none where one of the ways ends early."""
        found = [root, *(_producer_at(root, way) for way in self.ops[1:])]
        return [] if any(op is None for op in found) else found


D = TypeVar("D", bound=DagSite)


class DagRewrite(SiteRewrite[D]):
    """Replaces the results of last ops, whose other ops are gone then."""

    def find(self, module: Any, site: D, matcher: str) -> Any:
        """Emit a handle on the last ops of all sites of a kind, once what was replaced is gone."""
        transform.ApplyDeadCodeEliminationOp(module)
        return super().find(module, site, matcher)

    def match(self, root: Any, site: D) -> None:
        """Emit the comparison of all ops of a site."""
        transform.MatchOperationNameOp(root, [site.root.name])
        handles = Handles(root)
        for way, op in zip(site.ops, site.made_of(site.root), strict=True):
            match_dag(op, list(op.operands), handles.producer(way))

    def inputs(self, op: Any, site: D) -> list[Any]:
        """Emit handles on the leaves; fail where something else reads what the chain goes through."""
        handles = Handles(op)
        for number in range(len(site.along)):
            made = handles.producer(site.along[: number + 1])
            require_number(transform.get_consumers_of_result(transform.AnyOpType.get(), made, 0), 1)
        return list(map(handles.value, site.leaves))


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


def found_again(found: Sequence[D], ops: Sequence[Any]) -> Iterator[D]:
    """Yield the sites, but those of kinds whose matcher would find something else, too.

    Args:
        found: The sites. One that ends in the middle of another one stands behind that: what was replaced matches
            nothing.
        ops: All ops of the program.
    """
    gone, roots = set[Any](), dict[Any, list[Any]]()
    names = {site.root.name for site in found}
    for op in ops:
        if op.name in names and len(op.results) == 1:
            roots.setdefault(OpSite(op).kind, []).append(op)
    kinds: dict[Any, list[D]] = {}
    for site in found:
        kinds.setdefault(site.kind, []).append(site)
    for kind, alike in kinds.items():
        matched = {op for op in roots[OpSite(alike[0].root).kind] if op not in gone and alike[0].seen_from(op) == kind}
        if matched == {site.root for site in alike}:
            gone |= {op for site in alike for op in _chain_of(site)}
            yield from alike


def _chain_of(site: DagSite) -> list[Any]:
    """Return the ops that nothing reads once a site is replaced."""
    behind = (_producer_at(site.root, site.along[:number]) for number in range(1, len(site.along) + 1))
    return [site.root, *behind]


def _producer_at(root: Any, way: Path) -> Any:
    """Return the op that a way leads to; None where there is none."""
    value = _value_at(root, way)
    return None if value is None else producer(value)


def _value_at(root: Any, way: Path) -> Any:
    """Return the value that a way leads to; None where there is none."""
    op = root if len(way) == 1 else _producer_at(root, way[:-1])
    return op.operands[way[-1]] if op is not None and way[-1] < len(op.operands) else None
