"""What a library says of a sequence: of what code it was measured, where, and the times."""

from mlir_sched import __version__
from mlir_sched.database.record import describe
from mlir_sched.emission.finalists import Winner
from mlir_sched.library.library import TunedSequence
from mlir_sched.outcome import Timing
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task


def tuned_sequence(winner: Winner, target: Target) -> TunedSequence:
    """Return the sequence of the library for a script, with where it comes from and what is known of its time."""
    timing, task = winner.timing, winner.task
    assert task.dispatch is not None
    provenance = {
        "dispatch": task.name,
        "ops": describe(task.dispatch),
        **measurement(task, target, winner.code, timing),
        "seed": str(winner.seed),
    }
    return TunedSequence(
        winner.symbol, task.source, winner.space, winner.trace, provenance, task.name, winner.script, winner.code
    )


def measurement(task: Task, target: Target, code: str, timing: Timing) -> dict[str, str]:
    """Return what a library says of the measurement of a script: of what code, where, and the times."""
    return {
        "task": task.key,
        "code": code,
        "target": f"{target.name} {target.processor}",
        "target_key": target.key,
        "versions": f"mlir-sched {__version__}, iree-compiler {target.compiler}",
        **_times(timing),
    }


def _times(timing: Timing) -> dict[str, str]:
    if timing.is_estimated:
        return {"not_measured": f"estimated: {timing.median_s * 1e6:.2f} us, {timing.ratio:.3f} times as fast"}
    return {
        "speedup": f"{timing.ratio:.3f} ({timing.ratio_low:.3f} to {timing.ratio_high:.3f})",
        "median_us": f"{timing.median_s * 1e6:.2f} ({timing.low_s * 1e6:.2f} to {timing.high_s * 1e6:.2f})",
    }
