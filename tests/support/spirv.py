"""What tests ask of SPIR-V in compiled programs."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator

MAGIC = struct.pack("<I", 0x07230203)
HEADER_WORDS = 5


def opcodes(program: bytes) -> Counter[int]:
    """Return how often each opcode stands in the SPIR-V modules of a program. Source: SPIR-V, section 2.3."""
    counted, at = Counter[int](), program.find(MAGIC)
    while at >= 0:
        counted.update(_module(program, at))
        at = program.find(MAGIC, at + len(MAGIC))
    return counted


def _module(program: bytes, at: int) -> Iterator[int]:
    at += 4 * HEADER_WORDS
    while at + 4 <= len(program):
        (word,) = struct.unpack_from("<I", program, at)
        if (words := word >> 16) == 0:
            return
        yield word & 0xFFFF
        at += 4 * words
