"""Uses of a tuned folder: models compiled with its scripts, and folders that were moved."""

from mlir_sched.deployment.compilation import TunedCompilation, compile_tuned
from mlir_sched.deployment.relocation import relocate

__all__ = ["TunedCompilation", "compile_tuned", "relocate"]
