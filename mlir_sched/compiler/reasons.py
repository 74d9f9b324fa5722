"""Short reasons, for tables: one line for a person on why something is left as it is.

Compilers explain themselves with whole attributes: types with encodings, lists of CPU features, lines of IR. A row of a
table has room for the cause alone.
"""

import re

LENGTH = 120
"""Most characters of a reason."""

_POSITION = re.compile(r"^(?:.*?\berror:|loc\(unknown\):)\s*")
_STACK_LIMIT = re.compile(r"exceeded stack allocation limit of (\d+) bytes.*?Got (\d+) bytes", re.DOTALL)
_TRACEBACK = "Traceback (most recent call last)"
_TRANSFORM = re.compile(r"Diagnostic message at loc\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\): (.*)")
"""How the transform interpreter of IREE's Python package names the cause of a failure."""
_ATTRIBUTE = re.compile(r"<(?:[^<>]|<\.\.\.>){24,}>")


def reason(message: str) -> str:
    """Return the cause that a message of the compiler names.

    The place in the file and long attributes are left out, and what is longer than :data:`LENGTH` is cut.

    Args:
        message: Diagnostics, one or more lines; the first line with an error counts, else the first line. Of a Python
            traceback the last line counts, as an internal error.
    """
    if stack := _STACK_LIMIT.search(message):
        limit, needed = stack.groups()
        return f"IREE's code needs {needed} bytes of stack, more than its limit of {limit}"
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if lines and lines[0].startswith(_TRACEBACK):
        return _shortened(f"internal error: {lines[-1]}")
    if found := _TRANSFORM.search(message):
        return _shortened(found[1])
    first = next((line for line in lines if "error:" in line), lines[0] if lines else "no reason given")
    return _shortened(_POSITION.sub("", first))


def _shortened(line: str) -> str:
    text = " ".join(line.split())
    while (shorter := _ATTRIBUTE.sub("<...>", text)) != text:
        text = shorter
    return text if len(text) <= LENGTH else text[: LENGTH - 4] + " ..."
