"""The tasks of a model: one per distinct dispatch, each a stand-alone program."""

from mlir_sched.tasks.model import TASK_FLAGS, EntryPoint, Model, extract

__all__ = ["TASK_FLAGS", "EntryPoint", "Model", "extract"]
