"""Rewrites of ops that matchers do not tell apart: a script finds the ops by their places in the program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from iree.compiler import ir
from iree.compiler.dialects import transform

from mlir_sched.program.rewrites.dag_site import Handles, Path
from mlir_sched.program.rewrites.layout.forms import form_of, match_form
from mlir_sched.program.rewrites.linalg_ops import of_any_size
from mlir_sched.program.rewrites.replacement import Result, function_of, ops_named, replace_by, require_number, split
from mlir_sched.program.rewrites.site_rewrite import SiteRewrite
from mlir_sched.program.rewrites.walked_program import WalkedProgram


class PlacedSite(ABC):
    """A result of an op that is replaced.

    Attributes:
        op: The op.
    """

    op: Any

    @property
    @abstractmethod
    def inputs(self) -> list[Any]:
        """The values that the replacement is computed from."""

    @property
    @abstractmethod
    def built(self) -> tuple[Hashable, ...]:
        """What the replacement depends on, beside the types of its inputs and its result."""

    @property
    def any_size(self) -> bool:
        """Whether one replacement is right for all sizes, apart from those of one element; by default not."""
        return False

    @property
    def result(self) -> Any:
        """The result; by default the only one."""
        return self.op.result

    @property
    def targets(self) -> tuple[Any, ...]:
        """The op, and others in front of it whose results the replacement reads; by default none."""
        return (self.op,)

    @property
    def placed(self) -> list[Any]:
        """All ops that a script finds by their places; by default the targets."""
        return list(self.targets)

    @property
    def compared(self) -> Mapping[Path, Any]:
        """The ops that are compared, by the ways to them from the op."""
        return {(): self.op}

    @property
    def form(self) -> tuple[Hashable, ...]:
        """A key, equal for sites whose ops are compared alike, and lead to the inputs alike."""
        return self.any_size, *((way, *form_of(op)) for way, op in self.compared.items())

    @property
    def kind(self) -> tuple[Any, ...]:
        """A key, equal for sites that the same replacement is right for."""
        return *self.form, *self.built, *(value.type for value in (*self.inputs, self.result))


P = TypeVar("P", bound=PlacedSite)


class PlacedRewrite(SiteRewrite[P]):
    """Finds every op by its number among the ops of its name, all of them before the first one is replaced.

    One loop replaces the ops of a form, each by the function of its kind. The script fails where an op has another form
    than it had, or reads or makes values of other types than the function does.

    Attributes:
        typed: Whether ops are looked for by the types of their only results, too: where most ops of a name are others.
    """

    typed: ClassVar[bool] = False

    def numbers(self, sites: Sequence[Sequence[P]]) -> list[int]:
        """Return the numbers of the functions; kinds that differ in sizes alone may have one."""
        functions = [(*site.form, *site.built, *self.types(site)) for site, *_ in sites]
        first = {function: number for number, function in reversed([*enumerate(functions)])}
        return [first[function] for function in functions]

    def types(self, site: P) -> list[ir.Type]:
        """Return the types of the arguments of a replacement, and of its result."""
        return [of_any_size(kind) if site.any_size else kind for kind in super().types(site)]

    def match(self, root: Any, site: P) -> None:
        """Emit the comparison of the ops of a site."""
        handles = Handles(root)
        for way, op in site.compared.items():
            match_form(handles.producer(way), op)

    def compare(self, sites: Sequence[P], handles: Mapping[Any, Any]) -> None:
        """Emit what is compared of all sites together, given handles on their ops; by default nothing."""

    @abstractmethod
    def inputs(self, op: Any, site: P, *others: Any) -> list[Any]:
        """Emit handles on the inputs, from handles on the op and on the other targets."""

    def replaced_results(self, op: Any, site: P) -> list[Result]:
        """Emit handles on the ops whose results are replaced, in the program's order; by default that of the site."""
        return [(op, site.result.result_number)]

    def append_kind(self, library: ir.Module, symbol: str, site: P) -> None:
        """Append the replacement of a kind; the loop over a form holds the comparison."""
        self.append_function(library, symbol, site)

    def emit(self, module: Any, sites: Sequence[Sequence[P]], program: WalkedProgram) -> Any:
        """Emit the search for all ops and their replacement; see :meth:`SiteRewrite.emit`.

        An op is replaced before those in front of it: a replacement reads results that are still those of the targets.
        """
        every = [site for alike in sites for site in alike]
        handles = _handles(module, (op for site in every for op in site.placed), program, typed=self.typed)
        self.compare(every, handles)
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

    def _replace(self, site: P, rows: Sequence[Sequence[Any]]) -> None:
        """Emit the replacement of the ops of a form.

        Args:
            site: One of its sites.
            rows: Per site, handles on its function and on its targets.
        """
        each = transform.ForeachOp([], [transform.merge_handles(column) for column in zip(*rows, strict=True)])
        with ir.InsertionPoint(each.body):
            function, op, *others = each.bodyTargets
            self.match(op, site)
            inputs = self.inputs(op, site, *others)
            replace_by(self.replaced_results(op, site), function, inputs, any_size=site.any_size)
            transform.YieldOp()


def _handles(module: Any, ops: Iterable[Any], program: WalkedProgram, *, typed: bool) -> dict[Any, Any]:
    """Emit handles on all ops that have the name of one of some ops, and return them by op, each name's in order.

    Args:
        module: A handle on the program's module.
        ops: The ops.
        program: The program.
        typed: Whether only ops with the types of these ops' only results are looked for.
    """

    def sought(op: Any) -> tuple[str, ir.Type | None]:
        return op.name, op.results[0].type if typed and len(op.results) == 1 else None

    alike: dict[tuple[str, ir.Type | None], list[Any]] = {sought(op): [] for op in ops}
    for op in program.ops:
        if sought(op) in alike:
            alike[sought(op)].append(op)
    handles = dict[Any, Any]()
    for (name, result), same in alike.items():
        found = ops_named(module, name, result=result)
        require_number(found, len(same))
        handles |= zip(same, split(found, len(same)), strict=True)
    return handles
