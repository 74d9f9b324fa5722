"""The command line."""

from mlir_sched.cli.app import main

__all__ = ["main"]
