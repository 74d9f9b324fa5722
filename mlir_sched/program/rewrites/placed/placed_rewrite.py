"""Rewrites of ops that matchers do not tell apart: a script finds the ops by their places in the program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar, TypeVar

from iree.compiler import ir
from iree.compiler.dialects import transform

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.linalg_ops import of_any_size
from mlir_sched.program.rewrites.placed.comparison import compare, form_of, held, hold, match_op
from mlir_sched.program.rewrites.placed.links import Link, Made
from mlir_sched.program.rewrites.replacement import (
    append_function,
    function_of,
    ops_named,
    replace_by,
    require_number,
    split,
)
from mlir_sched.program.rewrites.site_rewrite import SiteRewrite
from mlir_sched.program.rewrites.walked_program import WalkedProgram

_CONSTANT = "arith.constant"


class PlacedSite(ABC):
    """A piece of a program, some of whose results are replaced.

    Attributes:
        op: The last op.
    """

    op: Any

    @property
    @abstractmethod
    def leaves(self) -> Sequence[Link]:
        """The values that the replacement is computed from, as ops of the piece have them."""

    @property
    @abstractmethod
    def built(self) -> tuple[Hashable, ...]:
        """What the replacement depends on, beside :attr:`form` and the types of what it reads and makes."""

    @property
    def ops(self) -> Sequence[Any]:
        """The ops of the piece, all of which are compared; by default the last one alone."""
        return (self.op,)

    @property
    def links(self) -> Sequence[Link]:
        """The values that ops of the piece read which have to be what they are; by default none."""
        return ()

    @property
    def is_alone(self) -> bool:
        """Whether its only op is compared where it is replaced; what constants it uses is compared before."""
        return len(self.ops) == 1 and not held(self.op)

    @property
    def results(self) -> Sequence[Link]:
        """The results that are replaced, in the order of the program; by default the first one of the last op."""
        return (Made(self.op, 0),)

    @property
    def computing(self) -> Sequence[Any]:
        """The ops that the replacement follows from; by default all."""
        return self.ops

    @property
    def any_size(self) -> bool:
        """Whether one replacement is right for all sizes, apart from those of one element; by default not."""
        return False

    @cached_property
    def inputs(self) -> list[Any]:
        """The values that the replacement is computed from."""
        return [value for leaf in self.leaves for value in leaf.values]

    @property
    def result(self) -> Any:
        """The last of the results."""
        return self.results[-1].value

    @cached_property
    def targets(self) -> Sequence[Any]:
        """The ops that have the inputs and the results, the last op first."""
        return tuple(dict.fromkeys((self.op, *(link.op for link in (*self.results, *self.leaves)))))

    @cached_property
    def form(self) -> tuple[Hashable, ...]:
        """A key, equal for sites that compute alike, and whose inputs and results a script finds alike."""
        ends = ((self.targets.index(link.op), link.form) for link in (*self.results, *self.leaves))
        return self.any_size, *map(form_of, self.computing), *ends

    @property
    def kind(self) -> tuple[Any, ...]:
        """A key, equal for sites that the same replacement is right for."""
        return *self.form, *self.built, *(value.type for value in (*self.inputs, self.result))


P = TypeVar("P", bound=PlacedSite)


class PlacedRewrite(SiteRewrite[P]):
    """Finds every op by its number among the ops of its name, all of them before the first one is replaced.

    All pieces are compared first, those of one op where that is replaced. One loop replaces the results of a form, each
    by the function of its kind. The script fails where a piece is another one than it was, or reads or makes values of
    other types than the function does.

    Attributes:
        typed: Whether ops are looked for by the types of their only results, too: where most ops of a name are others.
    """

    typed: ClassVar[bool] = False

    def numbers(self, sites: Sequence[Sequence[P]]) -> list[int]:
        """Return the numbers of the functions of all kinds; those that differ in sizes alone may have one."""
        functions = [(*site.form, *site.built, *self.types(site)) for site, *_ in sites]
        first = {function: number for number, function in reversed([*enumerate(functions)])}
        return [first[function] for function in functions]

    def types(self, site: P) -> list[ir.Type]:
        """Return the types of the arguments of a replacement, and of its results."""
        kinds = [value.type for value in (*site.inputs, *(made.value for made in site.results))]
        return [of_any_size(kind) if site.any_size else kind for kind in kinds]

    def match(self, root: Any, site: P) -> None:
        """Emit the comparison of a piece of one op; others are compared before the first op is replaced."""
        if site.is_alone:
            match_op(root, site.op)

    def inputs(self, op: Any, site: P, *others: Any) -> list[Any]:
        """Emit handles on the inputs, from handles on the targets."""
        handles = dict(zip(site.targets, (op, *others), strict=True))
        return [leaf.handle(handles[leaf.op]) for leaf in site.leaves]

    def append(self, library: ir.Module, program: WalkedProgram, found: dict[str, list[P]]) -> str:
        """Append what comparisons and replacements call, and the sequence; see :meth:`ProgramRewrite.append`."""
        for symbol, op in {symbol: op for op, symbol in self._holds(found.values()).items()}.items():
            append_function(library, symbol, [value.type for value in held(op)], [], hold)
        return super().append(library, program, found)

    def append_kind(self, library: ir.Module, symbol: str, site: P) -> None:
        """Append the replacement of a kind; the sequence of the rewrite holds the comparison."""
        self.append_function(library, symbol, site)

    def emit(self, module: Any, sites: Sequence[Sequence[P]], program: WalkedProgram) -> Any:
        """Emit the search for all ops, their comparison and their replacement; see :meth:`SiteRewrite.emit`.

        An op is replaced before those in front of it: a replacement reads results that are still those of the targets.
        """
        handles = self._compared(module, sites, program)
        places, numbers = {op: place for place, op in enumerate(handles)}, self.numbers(sites)
        functions = {number: function_of(f"compute_{self.symbol}_{number}") for number in dict.fromkeys(numbers)}
        forms: dict[Hashable, list[tuple[P, Any]]] = {}
        for number, alike in zip(numbers, sites, strict=True):
            for site in alike:
                forms.setdefault(site.form, []).append((site, functions[number]))
        for pairs in sorted(forms.values(), key=lambda pairs: -len(pairs[0][0].targets)):
            pairs.sort(key=lambda pair: -places[pair[0].op])
            self._replace(pairs[0][0], [[function, *map(handles.get, site.targets)] for site, function in pairs])
        transform.ApplyDeadCodeEliminationOp(module)
        return module

    def _compared(self, module: Any, sites: Sequence[Sequence[P]], program: WalkedProgram) -> dict[Any, Any]:
        """Emit the search for all ops and the comparison of pieces, and return handles on the ops."""
        every, symbols = [site for alike in sites for site in alike], self._holds(sites)
        placed = dict.fromkeys(op for site in every for op in site.ops)
        handles = self._handles(module, [each for op in placed for each in (op, *map(producer, held(op)))], program)
        holds = {symbol: function_of(symbol) for symbol in dict.fromkeys(symbols.values())}
        holding = {op: [holds[symbols[op]], *(handles[producer(each)] for each in held(op))] for op in symbols}
        pieces = [site for site in every if not site.is_alone]
        ops = dict.fromkeys(op for site in pieces for op in site.ops)
        inner = {op for op in ops if op.name != _CONSTANT} - {made.op for site in every for made in site.results}
        compare(ops, [site.links for site in pieces], inner, handles, holding)
        return handles

    def _replace(self, site: P, rows: Sequence[Sequence[Any]]) -> None:
        """Emit the replacement of the results of a form.

        Args:
            site: One of its sites.
            rows: Per site, handles on its function and on its targets.
        """
        each = transform.ForeachOp([], [transform.merge_handles(column) for column in zip(*rows, strict=True)])
        with ir.InsertionPoint(each.body):
            function, op, *others = each.bodyTargets
            self.match(op, site)
            inputs = self.inputs(op, site, *others)
            results = [((op, *others)[site.targets.index(made.op)], made.place) for made in site.results]
            replace_by(results, function, inputs, any_size=site.any_size)
            transform.YieldOp()

    def _holds(self, sites: Iterable[Sequence[P]]) -> dict[Any, str]:
        """Return the symbols of functions that do what :func:`hold` does, by the ops that need one."""
        types = {op: tuple(value.type for value in held(op)) for alike in sites for site in alike for op in site.ops}
        numbers = {each: number for number, each in enumerate(dict.fromkeys(filter(None, types.values())))}
        return {op: f"hold_{self.symbol}_{numbers[each]}" for op, each in types.items() if each}

    def _handles(self, module: Any, ops: Iterable[Any], program: WalkedProgram) -> dict[Any, Any]:
        """Emit handles on all ops that are alike one of some ops, and return them by op, in order where alike.

        Args:
            module: A handle on the program's module.
            ops: The ops.
            program: The program.
        """
        alike: dict[tuple[str, ir.Type | None], list[Any]] = {self._sought(op): [] for op in ops}
        for op in program.ops:
            if self._sought(op) in alike:
                alike[self._sought(op)].append(op)
        handles = dict[Any, Any]()
        for (name, result), same in alike.items():
            found = ops_named(module, name, result=result)
            require_number(found, len(same))
            handles |= zip(same, split(found, len(same)), strict=True)
        return handles

    def _sought(self, op: Any) -> tuple[str, ir.Type | None]:
        """Return the name of an op, and the type of its only result where it is looked for by that, too."""
        typed = len(op.results) == 1 and (self.typed or op.name == _CONSTANT)
        return op.name, op.results[0].type if typed else None
