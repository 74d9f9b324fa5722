"""The speed of mlir-sched itself, and what it does when it is interrupted."""
