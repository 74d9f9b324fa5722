"""The worker's side of ``tasks/shown.py``: a program returns results of its dispatches beside its own results.

Dispatches are formed when the results are added, so that the code of dispatches, and what scripts make of it, stays as
it is in the program itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import walk
from mlir_sched.compiler.passes import run_passes
from mlir_sched.compiler.tuned_dispatch import tuned_dispatches_in
from mlir_sched.compiler.worker.session import CONFIGURATIONS, END, FLOW, Compilation, context
from mlir_sched.payload import ELEMENT_BYTES, TensorSpec
from mlir_sched.tasks.shown import ShownFunction, ShownProgram, ShownResult
from mlir_sched.tasks.worker.call_counts import entry_of, functions_of, tied_operands, workload_size
from mlir_sched.tasks.worker.extraction import flow_module

_NEVER_INLINED = "inlining_policy"
_EXECUTABLE = "flow.executable"
_RESHAPE, _UPDATE = "flow.tensor.reshape", "flow.tensor.update"
_VIEW = "!hal.buffer_view"


def shown_program(path: str, names: Collection[str], most_bytes: int, hidden: Collection[str]) -> ShownProgram:
    """Return a program whose functions show results of their dispatches; the process's flags name the library.

    Results are those of dispatches that a function calls outside of loops and branches, and those of loops and branches
    as a whole. The last ones of a function are shown first.

    Raises:
        UserError, CompilerError: The compiler rejects the program.
    """
    with context(), ir.Location.unknown(), Compilation() as compilation:
        module, _ = flow_module(path, compilation)
        dispatches = _digest(module)
        _inline(module)
        called = functions_of(module)
        shown = {name: _show(called[name], most_bytes, hidden) for name in names}
        compilation.load(module)
        compilation.run(FLOW, CONFIGURATIONS)
        applied = frozenset(tuned_dispatches_in(module))
        compilation.run(CONFIGURATIONS, END)
        return ShownProgram(compilation.bytecode(), shown, dispatches, applied)


def _digest(module: Any) -> str:
    """Return a digest of the code of all dispatches."""
    operations = (op.operation for op in module.regions[0].blocks[0])
    text = "\n".join(str(op) for op in operations if op.name == _EXECUTABLE)
    return hashlib.sha256(text.encode()).hexdigest()


def _inline(module: Any) -> None:
    """Bring the dispatches of called functions into their callers: ``main`` only calls ``main$async``."""
    for function in functions_of(module).values():
        if _NEVER_INLINED in function.attributes:
            del function.attributes[_NEVER_INLINED]
    run_passes("builtin.module(inline)", module)


def _show(function: Any, most_bytes: int, hidden: Collection[str]) -> ShownFunction:
    """Let a function return the results that are shown, behind its own results."""
    if len(function.regions[0].blocks) > 1:
        return ShownFunction((), frozenset())
    block, chosen, free = function.regions[0].blocks[0], list[tuple[Any, ShownResult]](), most_bytes
    for value, result in reversed(_results(block, hidden)):
        if result.spec.bytes <= free:
            free -= result.spec.bytes
            chosen.insert(0, (value, result))
    values = [value for value, _ in chosen]
    behind = _behind(block, values)
    _return(function, block, values)
    return ShownFunction(tuple(result for _, result in chosen), behind)


def _results(block: Any, hidden: Collection[str]) -> list[tuple[Any, ShownResult]]:
    """Return the values of a block that can be shown, in their order."""
    found = []
    for op in (each.operation for each in block):
        maker = entry_of(op) if op.name == "flow.dispatch" else op.name
        if op.name != "flow.dispatch" and not op.regions:
            continue
        for value in op.results:
            spec = readable_spec(value.type)
            if spec is not None and spec.element_type not in hidden and not _is_written_on(value):
                found.append((value, ShownResult(maker, spec)))
    return found


def _is_written_on(value: Any) -> bool:
    """Say whether a further op writes into a tensor, of which parts may hold anything before."""
    for use in value.uses:
        op = use.owner.operation
        if op.name == _RESHAPE and _is_written_on(op.results[0]):
            return True
        if op.name == _UPDATE:
            return True
        if op.name == "flow.dispatch" and use.operand_number - workload_size(op) in tied_operands(op):
            return True
    return False


def readable_spec(type_: Any) -> TensorSpec | None:
    """Return the tensor of a type; None for a type whose values cannot be read."""
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape or type_.encoding is not None:
        return None
    spec = TensorSpec(tuple(type_.shape), str(type_.element_type))
    return spec if spec.element_type in ELEMENT_BYTES and spec.elements else None


def _behind(block: Any, values: Collection[Any]) -> frozenset[str]:
    """Return the symbols of the dispatches that some values depend on."""
    needed, names = set(values), set[str]()
    for op in reversed([each.operation for each in block]):
        if needed.isdisjoint(op.results):
            continue
        for each in (op, *walk(op)):
            needed |= set(each.operands)
            names |= {entry_of(each)} if each.name == "flow.dispatch" else set()
    return frozenset(names)


def _return(function: Any, block: Any, values: Collection[Any]) -> None:
    """Let a function return tensors behind its own results."""
    last = block.operations[len(block.operations) - 1].operation
    view = ir.Type.parse(_VIEW)
    with ir.InsertionPoint(last):
        exports = [_export(value, view) for value in values]
        ir.Operation.create("util.return", operands=[*last.operands, *exports])
    last.erase()
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    results = [*type_.results, *(view for _ in values)]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(type_.inputs, results))
    for name, filler in (("res_attrs", ir.DictAttr.get({})), ("tied_operands", _untied())):
        if name in function.attributes:
            known = list(ir.ArrayAttr(function.attributes[name]))
            function.attributes[name] = ir.ArrayAttr.get([*known, *(filler for _ in values)])


def _untied() -> Any:
    return ir.IntegerAttr.get(ir.IndexType.get(), -1)


def _export(value: Any, view: Any) -> Any:
    attributes = {"source_encoding": ir.TypeAttr.get(value.type)}
    return ir.Operation.create("hal.tensor.export", results=[view], operands=[value], attributes=attributes).result
