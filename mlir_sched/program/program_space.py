"""The decisions about a whole program, as one trace: its variant, and the algorithms of its convolutions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlir_sched.program.variant import LAYOUT, Variant
from mlir_sched.sampling import Categorical, Value
from mlir_sched.targets.kind import DEFAULT
from mlir_sched.trace import OnIllegal, Recorder, Trace

PROGRAM = "program"
"""What stands for a sketch in the trace of a program."""
VARIANT = "variant"
"""The decision between compiler flags and rewrites of the whole program."""
DIRECT, WINOGRAD = "direct", "winograd"
"""The algorithms of a convolution."""
_ALGORITHM = "algorithm "


@dataclass(frozen=True)
class ProgramSpace:
    """The decisions that a program has.

    Attributes:
        variants: Names of the variants: IREE's flags, and rewrites without other algorithms; the default first.
        shapes: Shapes of the convolutions that another algorithm can compute where the layout is channels last: rows
            and columns of the result, channels, filters.
    """

    variants: tuple[str, ...]
    shapes: tuple[str, ...] = ()

    def trace(self, values: Mapping[str, Value]) -> Trace:
        """Return the trace of given decisions; a convolution without a decision is computed directly.

        Raises:
            IllegalTraceError: The program has no such decision, or not this value of it.
        """
        recorder = Recorder({**values, **self._direct(values)}, on_illegal=OnIllegal.REJECT)
        if has_algorithms(recorder.decide(VARIANT, Categorical(self.variants))):
            for shape in self.shapes:
                recorder.decide(f"{_ALGORITHM}{shape}", Categorical((DIRECT, WINOGRAD)))
        return recorder.finish(PROGRAM)

    def trace_of(self, variant: Variant) -> Trace:
        """Return the trace of a variant; where it runs, in the calling thread or not, is no part of the program."""
        algorithms = variant.rewrite.algorithms if variant.rewrite else ()
        return self.trace({VARIANT: variant.base} | {f"{_ALGORITHM}{shape}": WINOGRAD for shape in algorithms})

    def _direct(self, values: Mapping[str, Value]) -> dict[str, Value]:
        missing = [name for shape in self.shapes if (name := f"{_ALGORITHM}{shape}") not in values]
        return dict.fromkeys(missing, DIRECT) if has_algorithms(values.get(VARIANT, "")) else {}


DEFAULT_ONLY = ProgramSpace((DEFAULT,))
"""The decisions about a program without variants."""


def has_algorithms(variant: Value) -> bool:
    """Say whether the convolutions of a variant have a choice of algorithms: its layout is settled."""
    return str(variant).partition("+")[0] == LAYOUT


def other_algorithms_in(values: Mapping[str, Value]) -> tuple[str, ...]:
    """Return the shapes of the convolutions that the decisions about a program compute by another algorithm."""
    return tuple(name.removeprefix(_ALGORITHM) for name, value in values.items() if value == WINOGRAD)
