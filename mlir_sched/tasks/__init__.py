"""From a model to its tasks: one per distinct dispatch, as a program of its own."""

from mlir_sched.tasks.model import TASK_FLAGS, EntryPoint, Model, extract

__all__ = [
    "TASK_FLAGS",
    "EntryPoint",
    "Model",
    "extract",
]
