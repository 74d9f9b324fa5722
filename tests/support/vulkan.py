"""The Vulkan device of this machine; where one is required, its absence is a failure and not a skip."""

from functools import cache

import iree.runtime as rt
from required import require

REQUIRED = "MLIR_SCHED_REQUIRE_VULKAN"
"""Environment variable: with the value 1, tests that need a Vulkan device fail where there is none."""


def require_vulkan() -> None:
    """Skip the current test, with the reason, when there is no Vulkan device; fail it when one is required."""
    require(why_no_vulkan(), REQUIRED)


@cache
def why_no_vulkan() -> str | None:
    """Return why programs cannot run on a Vulkan device here, or None when they can."""
    try:
        devices = rt.get_driver("vulkan").query_available_devices()
    except Exception as error:
        return f"IREE has no Vulkan driver here: {error}"
    return None if devices else "IREE finds no Vulkan device"
