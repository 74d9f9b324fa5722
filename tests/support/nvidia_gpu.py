"""The NVIDIA GPU of this machine; where one is required, its absence is a failure and not a skip."""

from functools import cache

from required import require

from mlir_sched.errors import UserError
from mlir_sched.targets import cuda

REQUIRED = "MLIR_SCHED_REQUIRE_CUDA"
"""Environment variable: with the value 1, tests that need an NVIDIA GPU fail where there is none."""


def require_cuda() -> None:
    """Skip the current test, with the reason, when there is no NVIDIA GPU; fail it when one is required."""
    require(why_no_cuda(), REQUIRED)


@cache
def why_no_cuda() -> str | None:
    """Return why programs cannot run on an NVIDIA GPU here, or None when they can."""
    try:
        cuda.detect(1)
    except UserError as error:
        return str(error).partition("; ")[0]
    return None
