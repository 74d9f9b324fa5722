"""Parts of documents that are made: what stands between two comments, by the maker that the first one names.

    <!-- made: MAKER ARGUMENT -->
    ...
    <!-- end -->

The text between the comments is replaced; what surrounds them is written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_PART = re.compile(r"<!-- made: (\w+)(?: ([^\n]*?))? -->\n.*?<!-- end -->", re.DOTALL)

Makers = Mapping[str, Callable[[str], str]]
"""By name, what makes a part from the argument of its comment."""


def with_made_parts(text: str, makers: Makers) -> str:
    """Return a document with its made parts renewed.

    Raises:
        KeyError: A part names a maker, or a maker's argument names a thing, that there is not.
    """

    def renew(part: re.Match[str]) -> str:
        opening = part[0].partition("\n")[0]
        return f"{opening}\n\n{makers[part[1]](part[2] or '')}\n\n<!-- end -->"

    return _PART.sub(renew, text)
