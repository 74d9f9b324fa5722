"""A program that shows the tensors its dispatches take: the program itself, with trace ops at the flow phase.

A ``flow.tensor.trace`` hands tensors to the host, which receives them under the op's key
(``iree.runtime.HalModuleDebugSink``). IREE's own ``--iree-flow-trace-dispatch-tensors`` also traces what the compiler
evaluates itself, and prints all weights of a model while it compiles the model.
"""

from collections.abc import Collection
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import walk
from mlir_sched.compiler.worker.session import END, FLOW, Compilation, context
from mlir_sched.tasks.worker.call_counts import entry_of, functions_of, tensor_operands
from mlir_sched.tasks.worker.extraction import flow_module


def traced_program(path: str, library: str, names: Collection[str]) -> bytes:
    """Return a compiled program that traces the tensors which some of its dispatches take.

    The key of a trace is the dispatch's symbol; the tensors come in the order of the dispatch's operands, before every
    call of it in a function. Calls in initializers are not traced.

    Raises:
        UserError, CompilerError: The compiler rejects the program.
    """
    with context(), ir.Location.unknown(), Compilation() as compilation:
        module, _ = flow_module(path, compilation, library)
        for function in functions_of(module).values():
            for op in list(walk(function)):
                if op.name == "flow.dispatch" and entry_of(op) in names:
                    _trace(op)
        compilation.load(module)
        compilation.run(FLOW, END)
        return compilation.bytecode()


def _trace(dispatch: Any) -> None:
    """Put a trace of a dispatch's tensors before it."""
    tensors = tensor_operands(dispatch)
    attributes = {
        "key": ir.StringAttr.get(entry_of(dispatch)),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(tensors), 0]),
    }
    with ir.InsertionPoint(dispatch):
        ir.Operation.create("flow.tensor.trace", operands=tensors, attributes=attributes)
