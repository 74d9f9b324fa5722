"""Rewrites that replace ops one by one, each by a function of the values that the op reads."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from iree.compiler import ir
from iree.compiler.dialects import transform

from mlir_sched.attributes import REWRITTEN
from mlir_sched.compiler.operations import captured, constant_of
from mlir_sched.program.rewrites.replacement import (
    append_function,
    append_sequence,
    attributes_of,
    match_dag,
    operand_of,
    replace,
    require_number,
)
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.walked_program import WalkedProgram


class Rewritable(Protocol):
    """A place of a program that is rewritten."""

    @property
    def inputs(self) -> Sequence[Any]:
        """The values that the replacement is computed from."""

    @property
    def result(self) -> Any:
        """The value that is replaced."""

    @property
    def kind(self) -> tuple[Any, ...]:
        """A key, equal for sites that the same matcher and the same replacement are right for."""


S = TypeVar("S", bound=Rewritable)


def told_apart(sites: Sequence[S], seen: Callable[[S], tuple[Any, ...]]) -> list[S]:
    """Return the sites, except those that no matcher can tell from a site that needs another replacement.

    Args:
        sites: All sites that were found.
        seen: Returns what a matcher compares of a site.
    """
    kinds: dict[tuple[Any, ...], set[tuple[Any, ...]]] = {}
    for site in sites:
        kinds.setdefault(seen(site), set()).add(site.kind)
    return [site for site in sites if len(kinds[seen(site)]) == 1]


def labelled(sites: Sequence[S]) -> dict[str, list[S]]:
    """Return the sites of every kind by a label: the shape of the result, numbered where several kinds have the same.

    Args:
        sites: All sites of a program, in its order; equal programs get equal labels.
    """
    kinds: dict[tuple[Any, ...], list[S]] = {}
    for site in sites:
        kinds.setdefault(site.kind, []).append(site)
    found, numbers = dict[str, list[S]](), Counter[str]()
    for alike in kinds.values():
        shape = "x".join(map(str, alike[0].result.type.shape)) or "scalar"
        numbers[shape] += 1
        found[shape if numbers[shape] == 1 else f"{shape}#{numbers[shape]}"] = alike
    return found


@dataclass(frozen=True)
class SiteRewrite(ProgramRewrite, Generic[S]):
    """Finds the sites again by one matcher per kind of site, and replaces the result of the matched op.

    Attributes:
        but: The kinds of sites that stay as they are, by their labels (:func:`labelled`).
    """

    but: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def symbol(self) -> str:
        """Name of the rewrite's sequence, and the first part of its matchers' and functions' names."""
        return self.name

    @abstractmethod
    def sites(self, program: WalkedProgram) -> list[S]:
        """Return the sites of a program."""

    @abstractmethod
    def match(self, root: Any, site: S) -> None:
        """Emit the comparison of an op with a site's op, in a matcher."""

    @abstractmethod
    def inputs(self, op: Any, site: S) -> list[Any]:
        """Emit handles on the values of :attr:`Rewritable.inputs`, from a handle on the op that is replaced."""

    def replaced(self, op: Any, site: S) -> Any:
        """Emit a handle on the op whose result is replaced; by default the matched op.

        Args:
            op: A handle on the matched op.
            site: Its site.
        """
        del site
        return op

    @abstractmethod
    def compute(self, site: S, *inputs: Any) -> Any:
        """Return what replaces the result, computed from the inputs by ops at the current insertion point.

        That is a list where a rewrite replaces several results of a site.
        """

    def find(self, module: Any, site: S, matcher: str) -> Any:
        """Emit a handle on the ops of all sites of a kind; by default those that a matcher finds.

        Args:
            module: A handle on the program's module.
            site: A site of the kind.
            matcher: Symbol of the sequence that :meth:`match` makes for it.
        """
        del site
        return transform.CollectMatchingOp([transform.AnyOpType.get()], module, matcher).results[0]

    def marked(self, result: Any) -> Any:
        """Return the op of a replacement that carries the mark of the rewrite; by default the last op.

        Args:
            result: What :meth:`compute` returned.
        """
        return result.owner

    def mark(self, site: S, result: Any) -> None:  # noqa: ARG002 - for others
        """Mark a replacement; by default the op that :meth:`marked` returns."""
        self.prove(self.marked(result))

    def prove(self, op: Any) -> None:
        """Mark an op as put in place by the rewrite."""
        op.attributes[REWRITTEN] = ir.StringAttr.get(self.name)

    def finds(self, program: WalkedProgram) -> dict[str, list[S]]:
        """Return the sites to rewrite: those of every kind by their label, without the kinds that stay as they are."""
        return {label: alike for label, alike in labelled(self.sites(program)).items() if label not in self.but}

    def numbers(self, sites: Sequence[Sequence[S]]) -> list[int]:
        """Return the numbers of the functions that replace the sites of every kind; by default each has its own."""
        return list(range(len(sites)))

    def append(self, library: ir.Module, program: WalkedProgram, found: dict[str, list[S]]) -> str:
        """Append matchers, replacements and the sequence; see :meth:`ProgramRewrite.append`."""
        sites = list(found.values())
        for number, (site, *_) in dict(zip(self.numbers(sites), sites, strict=True)).items():
            self.append_kind(library, f"{self.symbol}_{number}", site)
        append_sequence(library, self.symbol, lambda module: self.emit(module, sites, program), consumes=True)
        return self.symbol

    def emit(self, module: Any, sites: Sequence[Sequence[S]], program: WalkedProgram) -> Any:
        """Emit the replacement of all sites, and return a handle on the program's module.

        Args:
            module: A handle on the module.
            sites: The sites of every kind.
            program: The program as it was.
        """
        del program
        for index, (site, *others) in enumerate(sites):
            symbol = f"{self.symbol}_{index}"
            found = self.find(module, site, f"match_{symbol}")
            require_number(found, 1 + len(others))
            each = transform.ForeachOp([], [found])
            with ir.InsertionPoint(each.body):
                op = self.replaced(each.bodyTargets[0], site)
                replace(op, f"compute_{symbol}", self.inputs(op, site))
                transform.YieldOp()
        transform.ApplyDeadCodeEliminationOp(module)
        return transform.ApplyRegisteredPassOp(transform.AnyOpType.get(), module, "symbol-dce").result

    def append_kind(self, library: ir.Module, symbol: str, site: S) -> None:
        """Append the matcher and the replacement of a kind of sites.

        Args:
            library: The library.
            symbol: Symbol of the kind.
            site: A site of the kind.
        """

        def matcher(root: Any) -> Any:
            self.match(root, site)
            return root

        append_sequence(library, f"match_{symbol}", matcher)
        self.append_function(library, symbol, site)

    def append_function(self, library: ir.Module, symbol: str, site: S) -> None:
        """Append the replacement of a kind of sites; arguments as of :meth:`append_kind`."""

        def function(*inputs: Any) -> Sequence[Any]:
            result = self.compute(site, *inputs)
            self.mark(site, result)
            return result if isinstance(result, list) else [result]

        types, number = self.types(site), len(site.inputs)
        append_function(library, f"compute_{symbol}", types[:number], types[number:], function)

    def types(self, site: S) -> list[ir.Type]:
        """Return the types of the arguments of a replacement, and of what it returns; by default those of the site."""
        return [value.type for value in (*site.inputs, site.result)]


@dataclass(frozen=True)
class OpSite:
    """One op whose replacement is computed from all its operands.

    Attributes:
        op: The op; it has one result.
    """

    op: Any

    @property
    def inputs(self) -> list[Any]:
        """All operands."""
        return list(self.op.operands)

    @property
    def result(self) -> Any:
        """The op's result."""
        return self.op.result

    @property
    def kind(self) -> tuple[Any, ...]:
        """A key, equal for ops that the same replacement is right for."""
        return *self.form, *(value.type for value in self.op.operands)

    @property
    def form(self) -> tuple[Any, ...]:
        """A key, equal for ops that differ in the types of their operands alone."""
        return self.op.name, attributes_of(self.op), _body_of(self.op)


def _body_of(op: Any) -> tuple[Any, ...]:
    """Return the ops of an op's body, if it has one, as plain data; their text would contain names of values.

    In front of them are the constants that it uses from outside, by the order in which it uses what is outside.
    """
    if not len(op.regions):
        return ()
    block, outside = op.regions[0].blocks[0], dict.fromkeys(captured(op))
    numbers = {value: number for number, value in enumerate((*block.arguments, *outside))}
    found = list(map(constant_of, outside))
    for inner in (one.operation for one in block):
        types = (value.type for value in (*inner.operands, *inner.results))
        found.append((inner.name, attributes_of(inner), tuple(numbers.get(value) for value in inner.operands), *types))
        numbers |= {value: len(numbers) + place for place, value in enumerate(inner.results)}
    return tuple(found)


Op = TypeVar("Op", bound=OpSite)


class OpRewrite(SiteRewrite[Op]):
    """Replaces single ops, regardless of which ops make their operands."""

    def match(self, root: Any, site: Op) -> None:
        """Emit the comparison of the op."""
        transform.MatchOperationNameOp(root, [site.op.name])
        match_dag(site.op, site.inputs, root)

    def inputs(self, op: Any, site: Op) -> list[Any]:
        """Emit handles on the operands."""
        return [operand_of(op, number) for number in range(len(site.inputs))]
