"""IREE's passes on operations of this process."""

from typing import Any

from iree.compiler import ir, passmanager

from mlir_sched.errors import CompilerError


def run_passes(pipeline: str, operation: Any) -> None:
    """Run passes on an operation of the current context.

    Args:
        pipeline: The passes, as text.
        operation: The operation, which is changed in place.

    Raises:
        CompilerError: A pass fails.
    """
    passes = passmanager.PassManager.parse(pipeline)
    try:
        passes.run(operation)
    except ir.MLIRError as error:
        raise CompilerError(str(error)) from None
