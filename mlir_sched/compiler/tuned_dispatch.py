"""The dispatches of a model to which a sequence was applied, read from files that the compiler dumps on the way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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


def read_tuned_dispatches(folder: Path) -> tuple[TunedDispatch, ...]:
    """Return the dispatches in a folder of configured executables, one file each, that carry a sequence's mark."""
    from iree.compiler import ir

    from mlir_sched.attributes import APPLIED
    from mlir_sched.compiler.code_digest import code_digest
    from mlir_sched.compiler.operations import functions

    found = []
    with ir.Context(), ir.Location.unknown():
        for file in sorted(folder.glob("*.mlir")):
            text = file.read_text()
            if APPLIED not in text:
                continue
            module = ir.Module.parse(text)
            for function in functions(module.operation):
                if APPLIED in function.attributes:
                    name, mark = (ir.StringAttr(function.attributes[key]).value for key in ("sym_name", APPLIED))
                    found.append(TunedDispatch(name, mark, code_digest(function)))
    return tuple(found)
