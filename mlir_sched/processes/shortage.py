"""Signs that the machine is short of something: in the texts of errors, and in the folder for temporary files."""

import errno
import os
import shutil
import tempfile
from contextlib import suppress

SHORT = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Errors of the system that say that space, files or memory are used up."""
_TEXTS = tuple(os.strerror(number) for number in SHORT if number != errno.ENOMEM)
"""What they read in messages. A program may ask for more memory than there is, so that this text proves nothing."""
_LEAST_FREE_BYTES = 16 << 20
"""Free bytes of the folder for temporary files below which a compilation may fail: a candidate's files take some MB."""


def says_shortage(text: str) -> bool:
    """Say whether a message names a shortage that no candidate causes."""
    return any(known in text for known in _TEXTS)


def shortage() -> str:
    """Return what is short at present, in words; empty where nothing is seen to be."""
    folder = tempfile.gettempdir()
    with suppress(OSError):
        free = shutil.disk_usage(folder).free
        if free < _LEAST_FREE_BYTES:
            return f"{folder} has {free >> 20} MiB left"
    return ""
