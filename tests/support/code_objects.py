"""What AMD's code objects say of their kernels, as tests ask for it."""

from __future__ import annotations

import re

from mlir_sched.compiler.compile_result import CompileResult

_COUNT = rb"\.%s([\x00-\x7f]|\xcc.|\xcd..|\xce....)"


def metadata_number(result: CompileResult, key: str) -> int:
    """Return a number of the metadata of a compiled program with one kernel: ``vgpr_count``, ``vgpr_spill_count``.

    The metadata are a MessagePack map in a note of the code object. Source: LLVM's AMDGPUUsage, "Code Object Metadata".
    """
    assert result.vmfb is not None, result.failure
    (found,) = re.findall(_COUNT % re.escape(key.encode()), result.vmfb, re.DOTALL)
    return int.from_bytes(found[1:] or found, "big")
