"""Design spaces whose scripts do little, for tests of what becomes of scripts."""

from __future__ import annotations

from typing import cast

from mlir_sched.library.library import TunedSequence
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace
from mlir_sched.transform_scripts.emitter import Emitter


class MarkOnly:
    """A design space whose scripts do nothing but leave their mark."""

    def emit(self, trace: Trace, emitter: Emitter) -> None:
        pass


def marking(symbol: str, task: Task) -> TunedSequence:
    """Return a sequence that leaves its mark on the dispatch of a task."""
    space = cast("DesignSpace", MarkOnly())
    return TunedSequence(symbol, task.source, space, Trace("mark", ()), dispatch=task.name)
