"""A hash of what a compiled program does, the same for the same code in every process.

A ``.vmfb`` is a zip file with the host program and the executables. IREE 3.13 leaves four uninitialised bytes in the
writable table of an embedded ELF library, so of an ELF file only the sections that are loaded and never written count:
code, constants and relocations.
"""

from __future__ import annotations

import hashlib
import io
import struct
import zipfile
from collections.abc import Iterator

_ELF64_LITTLE_ENDIAN = b"\x7fELF\x02\x01"
_SECTION = struct.Struct("<IIQQQQIIQQ")
_NO_BITS = 8
_WRITE, _ALLOC = 1, 2


def program_hash(vmfb: bytes) -> str:
    """Return the SHA-256 of a compiled program's host code and executable code, in hexadecimal."""
    digest = hashlib.sha256()
    with zipfile.ZipFile(io.BytesIO(vmfb)) as archive:
        for name in sorted(archive.namelist()):
            for part in _parts(archive.read(name)):
                digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


def _parts(content: bytes) -> Iterator[bytes]:
    start = content.find(_ELF64_LITTLE_ENDIAN)
    if start < 0:
        yield content
    else:
        yield from _constant_sections(content[start:])


def _constant_sections(elf: bytes) -> Iterator[bytes]:
    """Yield the contents of the loaded sections that are not writable (ELF-64, little endian)."""
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    entry_size, count = struct.unpack_from("<HH", elf, 0x3A)
    for index in range(count):
        _, kind, flags, _, offset, size, *_ = _SECTION.unpack_from(elf, table + index * entry_size)
        if flags & _ALLOC and not flags & _WRITE and kind != _NO_BITS:
            yield elf[offset : offset + size]
