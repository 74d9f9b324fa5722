"""mlir-sched: probabilistic schedules for MLIR programs, tuned on the user's machine and compiled by IREE."""

__version__ = "0.1.0"
