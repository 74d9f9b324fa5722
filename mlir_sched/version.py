"""The version of mlir-sched, which records, libraries and summaries name."""

__version__ = "0.1.0"
