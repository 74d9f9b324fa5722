"""Programs written for another version of their dialect, which IREE cannot read: what its message leaves unsaid."""

from __future__ import annotations

import re

from mlir_sched.compiler.version import SUPPORTED

_FORMS = {
    "tosa": "TOSA 1.0, in which shapes, shifts, paddings and zero points are operands",
    "stablehlo": "the StableHLO of its own time",
    "torch": "the torch dialect of its own time, as iree-turbine and iree-import-onnx of the same version write it",
}
"""What IREE reads, by dialect."""

_OTHER_FORM = re.compile(
    rf"'({'|'.join(_FORMS)})\.\w+' (?:op )?"
    r"(?:is unknown|expected|requires attribute|requires \w+ operand|found in dialect|attribute '\w+' failed)"
)
"""Messages on an op that has other operands or attributes than its text, or no longer exists. IREE says of an op with
operands of wrong shapes or types that an operand \"must be\" something, or that types are incompatible."""


def with_version_hint(message: str) -> str:
    """Return a message of IREE's on a program that it cannot read, with the cause where that is the version.

    Args:
        message: One line.
    """
    found = _OTHER_FORM.search(message)
    if found is None:
        return message
    dialect = found[1]
    return (
        f"{message}; the text may be of another version of {dialect}: IREE {SUPPORTED} reads {_FORMS[dialect]}; "
        "export the model again in this form"
    )
