"""The estimated time of a whole program: what the model of the device says of all its dispatches."""

from __future__ import annotations

from dataclasses import replace

from mlir_sched.evaluation.estimating import estimated
from mlir_sched.evaluation.evaluator import Evaluator, UntunedError
from mlir_sched.program.profile import ProgramProfile
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.targets.target import GpuResources

LAUNCH_S = 3e-6
"""Seconds that a dispatch takes at least, as the device waits for the next launch. Source: measured on an NVIDIA H200
(``docs/measurement.md``, "Devices without timestamps")."""


def with_estimate(
    built: BuiltVariant, default: BuiltVariant | None, evaluator: Evaluator, device: GpuResources
) -> BuiltVariant:
    """Return a variant with its estimated time and profile, without scripts.

    A dispatch without an estimate counts with the time that the device's memory needs for its inputs and outputs. What
    is no dispatch, such as a copy, counts nothing.

    Args:
        built: The variant.
        default: The default variant, which the ratio is to; None for the default itself.
        evaluator: Estimates dispatches.
        device: What the model knows of the device.
    """
    tasks, seconds = built.model.tasks, dict[str, float]()
    for number, task in enumerate(tasks, 1):
        try:
            outcome = evaluator.untuned(task, tasks[number:])
            assert outcome.timing is not None
            seconds[task.name] = outcome.timing.median_s
        except UntunedError:
            seconds[task.name] = task.footprint_bytes / device.memory_bytes_per_s
    profile = ProgramProfile(
        {task.name: task.weight * seconds[task.name] for task in tasks}, {task.name: task.weight for task in tasks}
    )
    program_s = max(LAUNCH_S, sum(task.weight * max(LAUNCH_S, seconds[task.name]) for task in tasks))
    default_s = default.measured.median_s if default else program_s
    return replace(built, timing=estimated(program_s, default_s), profile=profile)
