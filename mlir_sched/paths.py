"""What the paths of files must be."""

from __future__ import annotations


def is_utf8(path: str) -> bool:
    """Say whether a path can be written in UTF-8, the only encoding that IREE reads paths in."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
