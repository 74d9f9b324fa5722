"""Files that this process has mapped into its memory, whose pages the system may take back at any time."""

import ctypes
import mmap
import os
from collections.abc import Collection, Iterator
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)


def release_pages(files: Collection[str]) -> None:
    """Take the pages of files out of this process, as the system does when memory is short.

    The next access to a page brings the page back, from the system's cache of files as a rule. Mappings that may be
    written to stay as they are.

    Args:
        files: Absolute paths without symbolic links.

    Raises:
        OSError: The system refuses.
    """
    for begin, end in _mappings(files):
        if _LIBC.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), mmap.MADV_DONTNEED):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def _mappings(files: Collection[str]) -> Iterator[tuple[int, int]]:
    """Yield where mappings of files that may only be read begin and end."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, access, *_, path = line.split(maxsplit=5)
        if path in files and "w" not in access:
            begin, end = addresses.split("-")
            yield int(begin, 16), int(end, 16)
