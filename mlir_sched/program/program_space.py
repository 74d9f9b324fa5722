"""The decisions about a whole program, as one trace: its variant, and the algorithms of its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlir_sched.library.parts import algorithms_of, parts_of
from mlir_sched.program.variant import Variant
from mlir_sched.sampling import Categorical, Value
from mlir_sched.targets.kind import DEFAULT
from mlir_sched.trace import OnIllegal, Recorder, Trace

PROGRAM = "program"
"""What stands for a sketch in the trace of a program."""
VARIANT = "variant"
"""The decision between compiler flags and rewrites of the whole program."""
_ALGORITHM = "algorithm "


@dataclass(frozen=True)
class ProgramSpace:
    """The decisions that a program has.

    Attributes:
        variants: Names of the variants: IREE's flags, and rewrites without other algorithms; the default first.
        parts: The parts that another algorithm can compute in some variants.
    """

    variants: tuple[str, ...]
    parts: tuple[str, ...] = ()

    def trace(self, values: Mapping[str, Value]) -> Trace:
        """Return the trace of given decisions; a part without a decision has the algorithm that needs none.

        Raises:
            IllegalTraceError: The program has no such decision, or not this value of it.
        """
        parts = parts_of(str(values.get(VARIANT, "")), self.parts)
        undecided = {_ALGORITHM + part: algorithms_of(part)[0] for part in parts}
        recorder = Recorder({**undecided, **values}, on_illegal=OnIllegal.REJECT)
        recorder.decide(VARIANT, Categorical(self.variants))
        for part in parts:
            recorder.decide(_ALGORITHM + part, Categorical(algorithms_of(part)))
        return recorder.finish(PROGRAM)

    def trace_of(self, variant: Variant) -> Trace:
        """Return the trace of a variant; where it runs, in the calling thread or not, is no part of the program."""
        chosen = variant.rewrite.algorithms if variant.rewrite else ()
        return self.trace({VARIANT: variant.base} | {_ALGORITHM + part: algorithms_of(part)[1] for part in chosen})


DEFAULT_ONLY = ProgramSpace((DEFAULT,))
"""The decisions about a program without variants."""


def other_algorithms_in(values: Mapping[str, Value]) -> tuple[str, ...]:
    """Return the parts that the decisions about a program compute by another algorithm."""
    decided = ((name.removeprefix(_ALGORITHM), value) for name, value in values.items() if name.startswith(_ALGORITHM))
    return tuple(part for part, value in decided if value == algorithms_of(part)[1])
