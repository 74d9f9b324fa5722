"""Response files, as in ``iree-compile @flags.txt``, in the form that LLVM reads.

Source: LLVM, ``cl::TokenizeGNUCommandLine`` (CommandLine.cpp): words end at whitespace; a backslash escapes the next
character, also inside single and double quotes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_SPECIAL = re.compile(r"[\s\"'\\]")
_ESCAPED = re.compile(r"[\\\"]")


def write_response_file(flags: Sequence[str]) -> str:
    """Return the text of a response file: one flag per line, in double quotes where it holds a special character."""
    return "".join(f"{_quoted(flag)}\n" for flag in flags)


def read_response_file(text: str) -> tuple[str, ...]:
    """Return the flags of a response file.

    Raises:
        ValueError: A quotation is not closed.
    """
    words: list[str] = []
    quote, inside = "", False
    characters = iter(text)
    for character in characters:
        if not quote and character.isspace():
            inside = False
            continue
        if not inside:
            words.append("")
            inside = True
        if character == "\\":
            words[-1] += next(characters, "")
        elif character == quote:
            quote = ""
        elif not quote and character in "'\"":
            quote = character
        else:
            words[-1] += character
    if quote:
        raise ValueError("no closing quotation")
    return tuple(words)


def _quoted(flag: str) -> str:
    escaped = _ESCAPED.sub(r"\\\g<0>", flag)
    return f'"{escaped}"' if _SPECIAL.search(flag) or not flag else flag
