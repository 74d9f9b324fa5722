"""The dispatches of a model to which a sequence was applied, read from files that the compiler dumps on the way."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class TunedDispatch:
    """One dispatch to which a sequence was applied.

    Attributes:
        name: The dispatch's symbol in the model.
        sequence: Name of the sequence that ran on the dispatch and reached its end.
        code: Digest of the dispatch's code as IREE is about to lower it (``code_digest.py``). It equals the digest of
            the candidate (``CompileResult.code``) if the model runs the same code that was measured.
    """

    name: str
    sequence: str
    code: str


def tuned_dispatches_in(root: Any) -> list[TunedDispatch]:
    """Return the dispatches at or below an operation that carry a sequence's mark.

    Args:
        root: An operation at IREE's executable-configurations phase.
    """
    from iree.compiler import ir

    from mlir_sched.attributes import APPLIED
    from mlir_sched.compiler.code_digest import code_digest
    from mlir_sched.compiler.operations import functions

    found = []
    for function in functions(root):
        if APPLIED in function.attributes:
            name, mark = (ir.StringAttr(function.attributes[key]).value for key in ("sym_name", APPLIED))
            found.append(TunedDispatch(name, mark, code_digest(function)))
    return found


def read_tuned_dispatches(files: Iterable[Path]) -> tuple[TunedDispatch, ...]:
    """Return the dispatches in files of configured executables that carry a sequence's mark."""
    from iree.compiler import ir

    from mlir_sched.attributes import APPLIED

    found = []
    with ir.Context(), ir.Location.unknown():
        for file in files:
            text = file.read_text()
            if APPLIED in text:
                found += tuned_dispatches_in(ir.Module.parse(text).operation)
    return tuple(found)
