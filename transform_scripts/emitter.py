"""The emitter of a schedule program, with one method per verb of the transform dialect that modules use.

Two emitters exist. :class:`Emitter` itself builds nothing, so that a program can be sampled, checked and featurised
thousands of times per second; :class:`~mlir_sched.transform_scripts.script.building.ScriptEmitter` builds the transform
ops. Both run the same program, so a trace and its script cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from mlir_sched.trace import Decision

Handle: TypeAlias = Any
"""A transform-dialect value (``None`` where no ops are built)."""


Place: TypeAlias = Any
"""A place between two ops of the script (``None`` where no ops are built)."""


class Sampled(int):
    """A sampled number: an ``int`` that remembers its decision, so that it prints as a parameter of the script.

    Arithmetic on it gives plain numbers, which the script then holds as literals.

    Attributes:
        decision: The random variable that the number belongs to.
        element: The number's position when the decision is a tuple, else 0.
        handle: The ``transform.param.constant`` of the number; None when the number is static (an attribute of the op
            that uses it) or no ops are built.
    """

    decision: Decision
    element: int
    handle: Handle

    def __new__(cls, value: int, decision: Decision, element: int = 0, handle: Handle = None) -> Sampled:
        """Make a sampled number from its value and its decision."""
        self = int.__new__(cls, value)
        self.decision, self.element, self.handle = decision, element, handle
        return self


class Emitter:
    """An emitter of transform ops; every method that makes a handle returns it.

    This class emits nothing, and its handles are None; ``script.ScriptEmitter`` builds the ops.
    """

    def param(self, decision: Decision, element: int) -> Handle:
        """Emit the number at ``element`` of a decision as a parameter."""

    def choice(self, decision: Decision) -> None:
        """Emit a decision that no op consumes (it decides which ops follow)."""

    def match_linalg_ops(self, count: int) -> tuple[Handle, ...]:
        """Match all linalg ops of the function and split them, in program order, into ``count`` handles."""
        return (None,) * count

    def match_ops(self, names: Sequence[str]) -> Handle:
        """Match all ops of the function that have one of the names."""

    def match_marked(self, mark: str) -> Handle:
        """Match all ops of the function that are annotated with a unit attribute of the name ``mark``."""

    def split(self, handle: Handle, count: int) -> tuple[Handle, ...]:
        """Split a handle of ``count`` ops into one handle per op."""
        del handle
        return (None,) * count

    def forget_loops(self) -> None:
        """Emit what ends the handles of all loops and copies made so far."""

    def tile_using_forall(self, target: Handle, sizes: Sequence[int], mapping: Sequence[str]) -> tuple[Handle, Handle]:
        """Emit ``structured.tile_using_forall``: (tiled op, forall)."""
        del target, sizes, mapping
        return None, None

    def tile_using_for(self, target: Handle, sizes: Sequence[int]) -> tuple[Handle, tuple[Handle, ...]]:
        """Emit ``structured.tile_using_for``: (tiled op, one loop per non-zero size)."""
        del target
        return None, (None,) * (len(sizes) - sizes.count(0))

    def tile_reduction_using_for(
        self, target: Handle, sizes: Sequence[int], results: int
    ) -> tuple[Handle, Handle, Handle]:
        """Emit ``structured.tile_reduction_using_for``: (partial, combine, loop), for an op with ``results``."""
        del target, sizes, results
        return None, None, None

    def fuse(self, target: Handle, sizes: Sequence[int]) -> tuple[Handle, tuple[Handle, ...]]:
        """Emit ``structured.fuse`` (tile, then fuse producers greedily): (tiled op, loops)."""
        del target
        return None, (None,) * (len(sizes) - sizes.count(0))

    def fuse_into_containing_op(self, producer: Handle, loop: Handle) -> tuple[Handle, Handle]:
        """Emit ``structured.fuse_into_containing_op``: (fused op, new loop)."""
        del producer, loop
        return None, None

    def interchange(self, target: Handle, order: Sequence[int]) -> Handle:
        """Emit ``structured.interchange``: the loops of a ``linalg.generic`` in another order."""

    def pack(self, target: Handle, sizes: Sequence[int]) -> Handle:
        """Emit ``structured.pack``: one inner tile size per loop, 0 leaves the loop unpacked."""

    def transpose_pack(self, target: Handle, operand: int, order: Sequence[int]) -> Handle:
        """Emit ``structured.pack_transpose``: the packed operand's outer dimensions in another order."""

    def lower_packs(self) -> None:
        """Emit ``structured.lower_pack`` on every ``linalg.pack``; ``linalg.transpose`` ops then do the copies."""

    def replace_by_function(self, target: Handle, function: str) -> None:
        """Put the body of a function in an op's place (TVM's tensorize), and the function beside the sequence.

        Args:
            target: An op; the function takes its operands and returns its results.
            function: A ``util.func`` of one block in MLIR syntax, with a name that is unique to its text.
        """

    def include(self, texts: Callable[[], Sequence[str]]) -> None:
        """Emit ``transform.include`` of a sequence on the function.

        Args:
            texts: Returns the sequence, a ``transform.named_sequence`` that only reads its handle and gives no result,
                in MLIR syntax, behind the functions that it looks up. The script holds all of them, each under a name
                that is unique to its text. It is called where a script is built, not where traces are only drawn.
        """

    def hoist_operand(
        self, target: Handle, operand: int, zeros: Sequence[str], dimensions: int, loops: int, order: Sequence[int]
    ) -> Handle:
        """Copy an operand's tiles, transposed, into a buffer in front of the innermost loops around an op.

        Emits ``structured.pad`` with a padding of zero width and ``structured.hoist_pad``, and returns the op; a
        ``tensor.pad`` and ``linalg.transpose`` ops are left to be vectorized.

        Args:
            operand: Index of the operand.
            zeros: A zero of every operand's type, in MLIR syntax.
            dimensions: Number of loops of the op.
            loops: Number of innermost loops around the op that the copy is hoisted out of.
            order: Order of the operand's dimensions in the buffer; a permutation that is its own inverse.
        """

    def share_operands(self, target: Handle, operands: Sequence[int]) -> Handle:
        """Emit ``iree.promote_operands``, which copies operands to shared memory, and return the op."""

    def peel(self, loop: Handle) -> None:
        """Emit ``loop.peel`` of a loop whose step does not divide its extent."""

    def unroll(self, loop: Handle, factor: int) -> None:
        """Emit ``loop.unroll``."""

    def vectorize(self, target: Handle, sizes: Sequence[int] = (), *, gathers: bool = False) -> None:
        """Emit ``structured.vectorize``; with sizes the vectors are masked. ``gathers``: whether ops may gather."""

    def apply_patterns(self, *patterns: str) -> None:
        """Apply the named pattern sets to the function, e.g. ``canonicalization``, ``vector.sink_ops``."""

    def cse(self) -> None:
        """Emit ``apply_cse`` on the function."""

    def run_pass(self, name: str) -> None:
        """Emit ``apply_registered_pass`` on the function."""

    def op(
        self,
        name: str,
        target: Handle | None = None,
        *,
        attributes: Mapping[str, str] | None = None,
        replaces_function: bool = False,
    ) -> None:
        """Emit an op on a handle, by default on the function.

        Args:
            name: The op's full name.
            target: The op's operand.
            attributes: The op's attributes in MLIR syntax.
            replaces_function: Whether the op's only result replaces the function's handle; if not, it has no result.
        """

    def op_on_all(self, name: str, kind: str, attributes: Mapping[str, str]) -> None:
        """Emit an op with one result, which is not used, on all ops of a kind in the function.

        Args:
            name: The op's full name.
            kind: Full name of the ops; the op's operand has to be of this type.
            attributes: The op's attributes in MLIR syntax.
        """

    def annotate(self, target: Handle | None, name: str, attribute: str | None, *, at: Place | None = None) -> None:
        """Annotate a handle (None: the function) with an attribute in MLIR syntax, or with a unit attribute.

        Args:
            attribute: The attribute in MLIR syntax; None for a unit attribute.
            at: Where the op stands; by default behind all ops so far.
        """

    def place(self) -> Place:
        """Return the place behind the ops so far, where :meth:`annotate` may put an op later."""
