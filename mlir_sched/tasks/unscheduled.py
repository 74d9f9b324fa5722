"""The reason why no transform module schedules a task, and what a run without any such task says, for a person."""

from mlir_sched.compiler.reasons import reason
from mlir_sched.payload import OpKind
from mlir_sched.tasks.task import Task

NOTHING_TO_SCHEDULE = (
    "nothing to schedule: no dispatch can have a script, each for the reason given with it; the program's variants, "
    "by compiler flags and rewrites, competed without scripts"
)
"""What is said of a program whose dispatches no transform module schedules."""


def why_unscheduled(task: Task) -> str:
    """Return the property of a task that keeps every transform module from scheduling it."""
    dispatch = task.dispatch
    if dispatch is None:
        return task.not_tunable
    names = {name for op in dispatch.ops for name in op.body}
    if dispatch.other_ops:
        return reason(f"no transform module schedules dispatches with {', '.join(sorted(set(dispatch.other_ops)))}")
    if all(op.iterations == 1 for op in dispatch.ops):
        return "it computes a single element, of which nothing is left to schedule"
    if "tensor.extract" in names:
        return "it gathers: it reads elements at computed places"
    if any(op.reduction_dims and op.reads_loop_index for op in dispatch.ops):
        return "its reduction computes with loop indices"
    if any(op.kind == OpKind.OTHER for op in dispatch.ops):
        return "it walks a tensor in steps that are not linear in its loops"
    if len(dispatch.results) > 1:
        return f"it stores the results of {len(dispatch.results)} ops, which no transform module schedules together"
    return reason(f"no transform module schedules its ops: {', '.join(dict.fromkeys(op.name for op in dispatch.ops))}")
