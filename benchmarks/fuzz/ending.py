"""What a command may do with damaged files: work, or end with an exit code and a line that say what is wrong."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

CODES = (0, 1, 2)
MOST_LINES = 2
"""Lines of a message: what is wrong and where, and where IREE says so, its line."""


def complaint(code: int, err: str) -> str:
    """Return what is not allowed of how a command ended; empty when all is."""
    if code not in CODES:
        return f"ended with {code}"
    if "Traceback" in err or "internal error" in err:
        return "a traceback or an internal error"
    if code == 2 and not 1 <= len(message_of(err)) <= MOST_LINES:
        return f"{len(message_of(err))} lines where one says it"
    return ""


def message_of(err: str) -> list[str]:
    """Return the lines of the message of an error, without the progress before it."""
    lines = err.strip().splitlines()
    starts = [place for place, line in enumerate(lines) if line.startswith("error: ")]
    return lines[starts[0] :] if starts else []


def contents(folder: Path) -> dict[str, str]:
    """Return a digest of every file below a folder, by its path."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def lost(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return which files are missing or changed; empty when none is."""
    gone = sorted(name for name, digest in before.items() if after.get(name) != digest)
    return f"changed or missing: {', '.join(gone)}" if gone else ""
