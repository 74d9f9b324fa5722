"""What docstrings say, as text of a page."""

import inspect
import re
from typing import Any

_ATTRIBUTE = re.compile(r"^ {4}(\w+(?:, \w+)*): (.+(?:\n {8}.+)*)", re.MULTILINE)


def first_paragraph_of(documented: Any) -> str:
    """Return the first paragraph of the docstring of a class, a function or a property."""
    return first_paragraph(inspect.getdoc(documented) or "")


def first_paragraph(docstring: str) -> str:
    """Return the first paragraph of a docstring, on one line, without the marks of Sphinx."""
    return _plain(docstring.split("\n\n")[0])


def attributes_of(documented: type) -> dict[str, str]:
    """Return what the docstring of a class says of each of its attributes, on one line, by name."""
    section = (inspect.getdoc(documented) or "").partition("\nAttributes:\n")[2].split("\n\n")[0]
    return {name: _plain(text) for names, text in _ATTRIBUTE.findall(section) for name in names.split(", ")}


def _plain(text: str) -> str:
    return re.sub(r":\w+:`[~.]?([^`]*)`", r"`\1`", " ".join(text.split())).replace("``", "`")
