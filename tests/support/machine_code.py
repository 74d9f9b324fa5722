"""The machine code inside of a compiled program, for tests that compare two compilations."""

from __future__ import annotations

import io
import struct
import zipfile

EXECUTABLE = 4
"""Flag of an ELF section that holds instructions."""


def machine_code(vmfb: bytes) -> bytes:
    """Return the instructions of a program's ELF executables, without names, constants and debug information."""
    with zipfile.ZipFile(io.BytesIO(vmfb)) as archive:
        contents = [archive.read(name) for name in sorted(archive.namelist())]
    starts = [content.find(b"\x7fELF\x02\x01") for content in contents]
    return b"".join(instructions(content[at:]) for content, at in zip(contents, starts, strict=True) if at >= 0)


def instructions(elf: bytes) -> bytes:
    """Return the sections of an ELF file (64 bits, little endian) that hold instructions."""
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    entry_size, count = struct.unpack_from("<HH", elf, 0x3A)
    found = b""
    for index in range(count):
        _, _, flags, _, offset, size = struct.unpack_from("<IIQQQQ", elf, table + index * entry_size)
        found += elf[offset : offset + size] if flags & EXECUTABLE else b""
    return found
