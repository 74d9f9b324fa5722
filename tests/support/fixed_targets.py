"""Machines that need not be there, their design spaces, and what these refuse and print."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from payload_text import Payload

from mlir_sched.errors import IllegalTraceError
from mlir_sched.sampling import Value
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets import vulkan
from mlir_sched.targets.clock import CALLS, EVENTS
from mlir_sched.targets.target import LOCAL, Driver, GpuLimits, Target
from mlir_sched.tasks.task import Task
from mlir_sched.trace import OnIllegal, Recorder

FIXED = Target("llvm-cpu", "llvm-cpu", LOCAL, (), "fixed", "3.13.0", "a CPU", 1, 64, 32, 32768, 1 << 20, 1 << 25, 32768)
"""A machine that does not depend on where the tests run: 64-byte vectors in 32 registers, one core."""

FIXED_VULKAN = Target(
    "vulkan",
    "vulkan-spirv",
    Driver("vulkan", EVENTS),
    ("--iree-hal-target-device=vulkan", "--iree-vulkan-target=llvmpipe"),
    "fixed",
    "3.13.0",
    "a GPU",
    1,
    vulkan.VECTOR_BYTES,
    vulkan.VECTOR_REGISTERS,
    gpu=GpuLimits(8, 1024, (1024, 1024, 64), (65535, 65535, 65535), 32768),
)
"""A Vulkan device that need not be there: programs for it can be compiled, not run."""

FIXED_CUDA = Target(
    "cuda",
    "cuda",
    Driver("cuda", CALLS),
    ("--iree-hal-target-device=cuda", "--iree-cuda-target=sm_80"),
    "fixed",
    "3.13.0",
    "a GPU",
    1,
    vulkan.VECTOR_BYTES,
    vulkan.VECTOR_REGISTERS,
    gpu=GpuLimits(32, 1024, (1024, 1024, 64), (2147483647, 65535, 65535), 166912),
)
"""A CUDA device that need not be there: programs for it can be compiled, not run."""


FIXED_ROCM = Target(
    "rocm",
    "rocm",
    Driver("hip", EVENTS),
    ("--iree-hal-target-device=hip", "--iree-rocm-target=gfx942"),
    "fixed",
    "3.13.0",
    "a GPU",
    1,
    vulkan.VECTOR_BYTES,
    128,
    gpu=GpuLimits(64, 1024, (1024, 1024, 1024), (2147483647, 2147483647, 2147483647), 65536),
)
"""A ROCm device that need not be there: programs for it can be compiled, not run."""


def design_spaces(task_for: Callable[[str | Payload], Task], space: Space) -> Callable[[str | Payload], DesignSpace]:
    """Return a function from a payload, or its name, to what a space spans for it on the fixed machine."""

    def make(wanted: str | Payload) -> DesignSpace:
        dispatch = task_for(wanted).dispatch
        assert dispatch is not None
        return DesignSpace(space, dispatch, FIXED)

    return make


def space_of(task: Task, target: Target) -> DesignSpace:
    """Return what the default space of a target spans for a task."""
    assert task.dispatch is not None
    return DesignSpace(Space.default(target), task.dispatch, target)


def assert_refused(space: DesignSpace, sketch: str, values: Mapping[str, Value], rule: str) -> None:
    """Require that a rule refuses the draws of a sketch that have some values."""
    with pytest.raises(IllegalTraceError, match=rule):
        space.run(sketch, Recorder(values, np.random.default_rng(0), OnIllegal.REJECT))


def assert_golden(
    golden: Callable[[str, str], None], name: str, space: DesignSpace, sketch: str, values: Mapping[str, Value]
) -> None:
    """Require that the script of some values is the golden one (a fixture), and that it gives the values back."""
    trace = space.run(sketch, Recorder(values, on_illegal=OnIllegal.REJECT))[0]
    script = space.script(trace)
    golden(name, script)
    assert space.trace_of(script) == trace
