"""The worker's side of ``targets/kind.py``: the executable target to which IREE resolves this process's flags."""

import re

from iree.compiler import ir

from mlir_sched.compiler.reasons import reason
from mlir_sched.compiler.worker.session import FLOW, START, Compilation, context
from mlir_sched.errors import CompilerError, UserError

_PROBE = "func.func @probe(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }"


def resolved_target() -> str:
    """Return the ``#hal.executable.target`` that the flags select, as it stands in programs.

    Raises:
        UserError: The flags select no device, or a device that IREE does not know.
    """
    with context(), ir.Location.unknown(), Compilation() as compilation:
        module = ir.Module.parse(_PROBE)
        compilation.load(module.operation)
        try:
            compilation.run(START, FLOW)
        except CompilerError as error:
            raise UserError(f"IREE does not know the target: {reason(str(error))}") from error
        for op in module.body:
            if op.operation.name == "util.global" and "initial_value" in op.operation.attributes:
                found = re.search(r"#hal\.executable\.target<.*>(?=\]>)", str(op.operation.attributes["initial_value"]))
                if found:
                    return found.group()
    raise UserError("the flags select no device with an executable target")
