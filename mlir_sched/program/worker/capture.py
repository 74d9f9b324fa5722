"""The values that dispatches of a program get: the program is compiled with traces, run, and listened to.

Runs in a compiler's worker process, on one thread of the CPU. A ``flow.tensor.trace`` hands tensors to the host, which
receives them under the op's key (``iree.runtime.HalModuleDebugSink``). IREE's own
``--iree-flow-trace-dispatch-tensors`` also traces what the compiler evaluates itself, and prints all weights of a model
while it compiles the model.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import iree.runtime as rt
import numpy as np
from iree.compiler import ir

from mlir_sched.compiler.operations import walk
from mlir_sched.compiler.worker.session import END, FLOW, Compilation, context
from mlir_sched.runner.checks.captured import Wanted, write_values
from mlir_sched.runner.checks.check import Check
from mlir_sched.runner.checks.inputs import alternatives, make_inputs
from mlir_sched.runner.program import Program
from mlir_sched.runner.worker.device import LocalDevice
from mlir_sched.runner.worker.references import most_usable
from mlir_sched.targets.target import LOCAL_SYNC
from mlir_sched.tasks.worker.call_counts import entry_of, functions_of, tensor_operands
from mlir_sched.tasks.worker.extraction import flow_module
from mlir_sched.tensors.element_types import Array


def capture_values(
    path: str, library: str, calls: Sequence[tuple[Program, Check]], wanted: Mapping[str, Wanted]
) -> tuple[str, ...]:
    """Write the tensors that dispatches take in their first call, and return the symbols of those that were called.

    Args:
        library: Text of a transform library that rewrites the program; empty for none.
        calls: The program's functions, without their code, each with the check whose inputs it gets. Where results are
            not usable, the function is called with the inputs that would take their place in a check.

    Raises:
        UserError, CompilerError, RuntimeError: The program does not compile or run.
    """
    vmfb = _traced_program(path, library, wanted.keys())
    listener = _Listener(wanted)
    device = LocalDevice(rt.VmInstance(), LOCAL_SYNC, on_trace=listener.hear)
    for program, check in calls:
        _call(device, program, vmfb, check, listener)
    return tuple(listener.written)


def _traced_program(path: str, library: str, names: Collection[str]) -> bytes:
    """Return a compiled program that traces the tensors which some of its dispatches take.

    The key of a trace is the dispatch's symbol; the tensors come in the order of the dispatch's operands, before every
    call of it in a function. Calls in initializers are not traced.
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


@dataclass
class _Listener:
    """Writes the first tensors that come under each key since it was told to begin anew."""

    wanted: Mapping[str, Wanted]
    written: set[str] = field(default_factory=set)
    _heard: set[str] = field(default_factory=set)

    def begin(self) -> None:
        """Take what comes from now on for the first call of every dispatch."""
        self._heard.clear()

    def hear(self, key: str, views: Sequence[Any]) -> None:
        """Write the tensors of a dispatch's first call, if their sizes are the expected ones."""
        wanted = self.wanted.get(key)
        if wanted is None or key in self._heard:
            return
        self._heard.add(key)
        if [view.byte_length for view in views] == [spec.bytes for spec in wanted.inputs]:
            write_values(Path(wanted.file), [_bytes_of(view) for view in views])
            self.written.add(key)


def _call(device: LocalDevice, program: Program, vmfb: bytes, check: Check, listener: _Listener) -> None:
    """Call a function on the inputs of a check, or on those alternatives whose results are the most usable."""
    loaded = device.load(program.with_code(vmfb))

    def results_of(each: Check) -> list[Array]:
        listener.begin()
        arrays = make_inputs(program.inputs, each)
        views = loaded.call([device.buffer(a, s) for a, s in zip(arrays, program.inputs, strict=True)], [])
        return [device.read(view, spec, keep=True) for view, spec in zip(views, program.outputs, strict=True)]

    most_usable(alternatives(check, program.inputs, program.outputs), results_of)


def _bytes_of(view: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return a copy of the bytes of a buffer view."""
    return np.array(view.map().asarray((view.byte_length,), np.dtype(np.uint8)))
