"""What the compiler, or a traceback, says of a failure, without what differs from one network to the next."""

import re

from mlir_sched.compiler.reasons import reason

_RAISED = re.compile(r"^[\w.]+(?:Error|Exception)\b.*", re.MULTILINE)
_PLACE = re.compile(r"^.*?:\d+:\d+: ", re.MULTILINE)


def cause(text: str) -> str:
    """Return what diagnostics, or a traceback, name as the cause, without its place in the file."""
    if errors := _RAISED.findall(text):
        text = errors[-1]
    return reason(_PLACE.sub("", text))
