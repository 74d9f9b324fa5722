"""Rewrites of ops that matchers do not tell apart: a script finds the ops by their places in the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from iree.compiler import ir
from iree.compiler.dialects import transform

from mlir_sched.compiler.operations import walk
from mlir_sched.program.rewrites.replacement import included, merged, ops_named, replace, require_number
from mlir_sched.program.rewrites.site_rewrite import Rewritable, SiteRewrite


class Placed(Rewritable, Protocol):
    """A place of a program that is rewritten: a result of an op."""

    @property
    def op(self) -> Any:
        """The op."""


P = TypeVar("P", bound=Placed)


class PlacedRewrite(SiteRewrite[P]):
    """Finds every op by its number among the ops of its name, all of them before the first one is replaced.

    The matcher of its kind says whether the op is as it was; the script fails where it is not.
    """

    def emit(self, module: Any, sites: Sequence[Sequence[P]], program: ir.Module) -> Any:
        """Emit the search for all ops and their replacement; see :meth:`SiteRewrite.emit`."""
        any_op, handles = transform.AnyOpType.get(), dict[Any, Any]()
        for name in dict.fromkeys(site.op.name for alike in sites for site in alike):
            ops = [op for op in walk(program.operation) if op.name == name]
            found = ops_named(module, name)
            require_number(found, len(ops))
            handles |= zip(ops, transform.SplitHandleOp([any_op] * len(ops), found).results, strict=True)
        for number, alike in enumerate(sites):
            self._replace(merged([handles[site.op] for site in alike]), number, alike[0])
        transform.ApplyDeadCodeEliminationOp(module)
        return transform.ApplyRegisteredPassOp(any_op, module, "symbol-dce").result

    def _replace(self, found: Any, number: int, site: P) -> None:
        """Emit the replacement of the ops of a kind, given its number and one of its sites."""
        each = transform.ForeachOp([], [found])
        with ir.InsertionPoint(each.body):
            op = included(f"match_{self.symbol}_{number}", each.bodyTargets[0])
            replace(op, f"compute_{self.symbol}_{number}", self.inputs(op, site), site.result.result_number)
            transform.YieldOp()
