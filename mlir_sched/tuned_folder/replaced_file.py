"""The one way in which files are written that users asked for: whole or not at all, wherever the path leads."""

import mmap
import os
import secrets
from contextlib import suppress
from pathlib import Path

_BEGIN, _END = ".mlir-sched-", ".new"


def replace_file(path: Path, content: bytes | mmap.mmap) -> None:
    """Write a file whole or not at all, with the permissions that the umask leaves.

    A link is written through, so that its target is replaced and the link stays. What is no regular file, such as a
    device or a pipe, takes the content and stays what it is.

    Raises:
        OSError: The file cannot be written; what was there before is still there.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f"{_BEGIN}{secrets.token_hex(8)}{_END}")
    with temporary.open("xb") as file:  # never opens what is there, be it a link
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            temporary.replace(target)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise


def left_temporaries(folder: Path) -> list[Path]:
    """Return the temporary files that killed writers left in a folder, sorted."""
    return sorted(folder.glob(f"{_BEGIN}{'[0-9a-f]' * 16}{_END}"))
