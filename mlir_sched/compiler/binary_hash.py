"""A hash of a compiled program's code that does not depend on the process that compiled it.

A ``.vmfb`` is a zip file with the host program and the executables. IREE 3.13 leaves four uninitialised bytes in the
writable table of an embedded ELF library, so the hash of an ELF file covers only the sections that are loaded and never
written: code, constants and relocations.
"""

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
    """Return a SHA-256 of a compiled program's host code and executable code, in hexadecimal."""
    digest = hashlib.sha256()
    for content in _files(vmfb):
        start = content.find(_ELF64_LITTLE_ENDIAN)
        parts = [content] if start < 0 else list(_constant_sections(content[start:]))
        for part in parts:
            digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


def _files(vmfb: bytes) -> Iterator[bytes]:
    with zipfile.ZipFile(io.BytesIO(vmfb)) as archive:
        for name in sorted(archive.namelist()):
            yield archive.read(name)


def _constant_sections(elf: bytes) -> Iterator[bytes]:
    """Yield the contents of the loaded sections that are not writable (ELF-64, little endian)."""
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    entry_size, count = struct.unpack_from("<HH", elf, 0x3A)
    for index in range(count):
        _, kind, flags, _, offset, size, *_ = _SECTION.unpack_from(elf, table + index * entry_size)
        if flags & _ALLOC and not flags & _WRITE and kind != _NO_BITS:
            yield elf[offset : offset + size]
