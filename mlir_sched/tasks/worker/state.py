"""The state of a program: the globals that its functions change, and so keep from one call to the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_sched.tasks.worker.call_counts import callee_of, functions_of, is_public, operations_below
from mlir_sched.tasks.worker.constants import changed_globals, global_of

_LOAD, _STORE, _ADDRESS = "util.global.load", "util.global.store", "util.global.address"


@dataclass(frozen=True)
class StateUse:
    """The globals of a program's state that a function uses, the functions that it calls included.

    Attributes:
        reads: Names of those that it reads, sorted.
        writes: Names of those that it changes, sorted.
    """

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


def state_uses(module: Any) -> Mapping[str, StateUse]:
    """Return what every public function does with the state, by name.

    A global whose address is taken may be read and changed.
    """
    functions, state = functions_of(module), changed_globals(module)
    public = [name for name in functions if is_public(functions[name])]
    return {name: _use([each for each in _touched(name, functions) if each[1] in state]) for name in public}


def _use(touched: Sequence[tuple[str, str]]) -> StateUse:
    reads, writes = ({symbol for kind, symbol in touched if kind != other} for other in (_STORE, _LOAD))
    return StateUse(tuple(sorted(reads)), tuple(sorted(writes)))


def _touched(name: str, functions: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what a function and those that it calls do with globals: the kind of operation, and the global's name."""
    seen, waiting = {name}, [name]
    while waiting:
        for op in operations_below(functions[waiting.pop()]):
            callee = callee_of(op)
            if callee is not None and callee in functions and callee not in seen:
                seen.add(callee)
                waiting.append(callee)
            if op.name in (_LOAD, _STORE, _ADDRESS):
                yield op.name, global_of(op)
