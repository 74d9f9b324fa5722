"""The chains of a program (:mod:`.chain`), and which of them a matcher can find again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import linalg

from mlir_sched.compiler.operations import producer, walk
from mlir_sched.program.rewrites.constant_values import LOAD, constant_globals, global_of, is_constant
from mlir_sched.program.rewrites.convolution_ops import is_static_f32
from mlir_sched.program.rewrites.folding.affine import Affine, applied
from mlir_sched.program.rewrites.folding.chain import Chain, Step
from mlir_sched.program.rewrites.folding.linear import INIT, Linear, linear, source_loops, starts_with_zeros
from mlir_sched.program.rewrites.folding.moves import moved_sizes
from mlir_sched.program.rewrites.linalg_ops import COLLAPSE, EXPAND, maps_of, number
from mlir_sched.program.rewrites.site_rewrite import OpSite

GENERIC = "linalg.generic"


def chains(program: ir.Module) -> list[Chain]:
    """Return the chains of a program that a matcher finds again, the longest first.

    Once the longer ones are replaced, what is left of them matches nothing.
    """
    ops = list(walk(program.operation))
    facts = _Facts(constant_globals(program), Counter(global_of(op) for op in ops if op.name == LOAD))
    found = [chain for op in ops if (begin := linear(op, facts.globals)) and (chain := facts.chain(begin))]
    return list(_found_again(sorted(found, key=lambda chain: -len(chain.steps)), ops))


def _found_again(found: Sequence[Chain], ops: Sequence[Any]) -> Iterator[Chain]:
    """Yield the chains but those of kinds whose matcher would find something else, too."""
    gone, roots = set[Any](), dict[Any, list[Any]]()
    for op in filter(_is_elementwise, ops):
        roots.setdefault(OpSite(op).kind, []).append(op)
    kinds: dict[Any, list[Chain]] = {}
    for chain in found:
        kinds.setdefault(chain.kind, []).append(chain)
    for kind, alike in kinds.items():
        matched = {op for op in roots[OpSite(alike[0].root).kind] if op not in gone and alike[0].seen_from(op) == kind}
        if matched == {chain.root for chain in alike}:
            gone |= {step.op for chain in alike for step in chain.steps}
            yield from alike


@dataclass(frozen=True)
class _Facts:
    """What has to be known of the whole program.

    Attributes:
        globals: Symbols of the globals that are never written.
        loads: How often each global is loaded.
    """

    globals: frozenset[str]
    loads: Counter[str]

    def chain(self, begin: Linear) -> Chain | None:
        """Return the chain that begins with a linear op; None where nothing is to be gained."""
        walked = _Walked(begin, self)
        if not walked.start():
            return None
        while walked.go_on():
            pass
        return walked.chain()

    def is_number(self, value: Any) -> bool:
        """Say whether a value is a constant tensor."""
        return is_static_f32(value) and is_constant(value, self.globals)

    def is_read_alone(self, value: Any) -> bool:
        """Say whether a constant, and what it is a reshape or a copy of, has no other reader."""
        op = producer(value)
        if len([*value.uses]) > 1 or (op.name == LOAD and self.loads[global_of(op)] > 1):
            return False
        return not (op.name in (COLLAPSE, EXPAND) or source_loops(op) is not None) or self.is_read_alone(op.operands[0])


@dataclass
class _Walked:
    """A chain while it is followed from its linear op on.

    Attributes:
        begin: The linear op.
        facts: What is known of the program.
        steps: The ops so far.
        sizes: Sizes of all numbers so far, as factors of the last op's result.
        complete: How many of the steps end in one that scales or shifts.
    """

    begin: Linear
    facts: _Facts
    steps: list[Step] = field(default_factory=list)
    sizes: list[list[int]] = field(default_factory=list)
    complete: int = 0

    def start(self) -> bool:
        """Read what the sums start with; return whether a chain may begin with it."""
        op = self.begin.op
        if starts_with_zeros(op):
            return True
        copy = producer(op.operands[INIT])
        if copy is None or source_loops(copy) is None or not self.facts.is_number(copy.operands[0]):
            return False
        self.sizes = [sizes for sizes in [factor_sizes(copy, 0)] if sizes is not None and self.begin.fits(sizes)]
        return bool(self.sizes)

    def go_on(self) -> bool:
        """Take the next op; return False where the chain ends."""
        value = self.steps[-1].op.results[0] if self.steps else self.begin.op.results[0]
        uses = [*value.uses]
        if len(uses) != 1:
            return False
        step = Step(uses[0].owner.operation, uses[0].operand_number)
        if step.op.parent != self.begin.op.parent:
            return False
        sizes = self._moved(step) if step.is_move else self._scaled(step, value)
        if sizes is None:
            return False
        self.steps, self.sizes = [*self.steps, step], sizes
        self.complete = self.complete if step.is_move else len(self.steps)
        return True

    def chain(self) -> Chain | None:
        """Return the chain; None where it only shifts once."""
        steps = tuple(self.steps[: self.complete])
        affine = [step for step in steps if not step.is_move]
        has_bias = not starts_with_zeros(self.begin.op)
        scales, shifts = _parts(steps, has_bias=has_bias) or (False, False)
        if not scales and len(affine) + has_bias <= 1:
            return None
        chain = Chain(self.begin, steps, self._copies() if scales else (), scales, shifts)
        weights = self.begin.op.operands[self.begin.weights]
        return chain if not scales or self.facts.is_read_alone(weights) else None

    def _moved(self, step: Step) -> list[list[int]] | None:
        """Return the sizes of all numbers behind a move."""
        moved = [moved_sizes(step.op, sizes) for sizes in self.sizes]
        found = [sizes for sizes in moved if sizes is not None]
        return found if step.place == 0 and len(found) == len(moved) else None

    def _scaled(self, step: Step, value: Any) -> list[list[int]] | None:
        """Return the sizes of all numbers up to a step that scales or shifts; None where it is none."""
        if not _is_elementwise(step.op) or step.op.results[0].type != value.type:
            return None
        if factor_sizes(step.op, step.place) != list(value.type.shape) or _parts([step], has_bias=False) is None:
            return None
        own = [factor_sizes(step.op, place) for place in step.numbers]
        numbers = [step.op.operands[place] for place in step.numbers]
        if not all(map(self.facts.is_number, numbers)) or not all(map(self._fits, own)):
            return None
        return [*self.sizes, *(sizes for sizes in own if sizes is not None)]

    def _fits(self, sizes: list[int] | None) -> bool:
        """Say whether a factor of the last op's result is one of the weights."""
        begin = None if sizes is None else self._in_front(sizes)
        return begin is not None and self.begin.fits(begin)

    def _in_front(self, sizes: list[int]) -> list[int] | None:
        """Return the sizes of a factor of the last op's result as one of the linear op's result."""
        found: list[int] | None = sizes
        for step in reversed(self.steps):
            found = moved_sizes(step.op, found, back=True) if step.is_move and found is not None else found
        return found

    def _copies(self) -> tuple[Any, ...]:
        """Return the ops that repeat or transpose the weights, from the linear op back, which scaling may precede."""
        scaled = {
            self.begin.channels[dim]
            for sizes in self.sizes
            for dim, size in enumerate(self._in_front(sizes) or ())
            if size > 1
        }
        found, op = list[Any](), producer(self.begin.op.operands[self.begin.weights])
        while (loops := source_loops(op)) is not None and scaled <= {*loops}:
            scaled = {loops.index(dim) for dim in scaled}
            found.append(op)
            op = producer(op.operands[0])
        return tuple(found)


def _is_elementwise(op: Any) -> bool:
    """Say whether an op computes every element of its only result from elements of its operands."""
    if op.name != GENERIC or len(op.results) != 1 or "reduction" in str(op.attributes["iterator_types"]):
        return False
    return bool(maps_of(op)[-1] == ir.AffineMap.get_identity(op.results[0].type.rank))


def _parts(steps: Sequence[Step], *, has_bias: bool) -> tuple[bool, bool] | None:
    """Return whether steps scale, and whether they shift, a number that has a bias or none; None if not affine."""
    scratch = ir.Module.create()
    with ir.InsertionPoint(scratch.body):
        some = number(ir.F32Type.get(), 1.0)
        form: Affine | None = Affine(shift=some if has_bias else None)
        for step in steps:
            form = (
                form
                if step.is_move or form is None
                else applied(step.op, step.place, form, dict.fromkeys(step.numbers, some))
            )
        return None if form is None else (form.scale is not None, form.shift is not None)


def factor_sizes(op: Any, place: int) -> list[int] | None:
    """Return the sizes of an operand as a factor of an element-wise op's result (:mod:`.moves`); None for no factor."""
    map_ = ir.AffineMapAttr(linalg.get_indexing_maps(op)[place]).value
    sizes, last = [1] * map_.n_dims, -1
    for expr, size in zip(map_.results, op.operands[place].type.shape, strict=True):
        if size == 1:
            continue
        if not isinstance(expr, ir.AffineDimExpr) or (dim := ir.AffineDimExpr(expr).position) <= last:
            return None
        sizes[dim], last = size, dim
    return sizes
