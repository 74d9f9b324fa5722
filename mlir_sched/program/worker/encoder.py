"""Splits a program in two: an encoder, which computes weights from parameters, and the program without that.

At the flow phase, IREE has moved what depends on constants alone into initializers, which run whenever the program is
loaded. The encoder has those that compute something from parameters, and functions that return what they make. In the
program, parameters take the place of what they make.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import symbol_of, walk
from mlir_sched.compiler.passes import run_passes
from mlir_sched.compiler.reasons import reason
from mlir_sched.errors import UserError
from mlir_sched.payload import TensorSpec
from mlir_sched.program.encoding import EncodedTensor, ParameterName, SplitProgram
from mlir_sched.tasks.worker.constants import VIEWS, changed_globals, global_of
from mlir_sched.tasks.worker.showing import readable_spec

_GLOBAL, _INITIALIZER, _FUNCTION = "util.global", "util.initializer", "util.func"
_LOAD, _STORE, _ADDRESS, _RETURN = "util.global.load", "util.global.store", "util.global.address", "util.return"
_INITIAL, _POLICY = "initial_value", "inlining_policy"
_COMPUTING = ("arith.", "tensor.", "flow.tensor.", "flow.dispatch")
"""Begins of the names of ops that compute tensors and do nothing else, but for the next one."""
_TRACE = "flow.tensor.trace"
_FREE = (_LOAD, _STORE, _RETURN, "arith.constant", *VIEWS)
"""Ops that take neither time nor memory: tensors that only these make stay where they are."""
_PARAMETER = re.compile(r'#flow\.parameter\.named<(?:"([^"]*)"::)?"([^"]*)"')
_DEVICE = re.compile(r'#hal\.device\.target<"([^"]*)"')
_CLEAN = "builtin.module(symbol-dce)"


@dataclass(frozen=True)
class _Initializer:
    """An initializer that computes tensors and does nothing else.

    Attributes:
        position: Its place among the operations of the program.
        reads: The globals that it reads.
        writes: The globals that it writes, each with what it holds.
        computes: Whether it takes time or memory.
    """

    position: int
    reads: tuple[str, ...]
    writes: Mapping[str, TensorSpec]
    computes: bool


@dataclass(frozen=True)
class _Division:
    """Which parts of a program go where.

    Attributes:
        encoder: Positions of the initializers that the encoder needs.
        dropped: Positions of the initializers that the program does not need any more.
        tensors: The globals that the program reads and the encoder writes, each with what it holds and the scope of a
            parameter that it is computed from.
    """

    encoder: frozenset[int]
    dropped: frozenset[int]
    tensors: Mapping[str, tuple[TensorSpec, str]]


def split(text: str) -> tuple[str, str, SplitProgram]:
    """Return a program without what depends on parameters alone, its encoder, and what they share; in this context.

    Args:
        text: The program at the flow phase.

    Raises:
        UserError: The program runs on another device than the CPU, or IREE does not read what it wrote: in names of
            parameters, quotes and backslashes are printed as they are (IREE 3.13).
    """
    try:
        program, encoder = ir.Module.parse(text), ir.Module.parse(text)
    except ir.MLIRError as error:
        raise UserError(f"IREE does not read its own text of the program: {reason(str(error))}") from None
    _require_cpu(program)
    sources = tuple(sorted({name.scope for name in _parameters(program).values()}))
    division = _divide(program)
    functions = {name: f"encoded_{number}" for number, name in enumerate(division.tensors)}
    _make_encoder(encoder, division, functions)
    encoder_text = str(encoder)
    digest = hashlib.sha256(encoder_text.encode()).hexdigest()[:16]
    encoded = {
        name: EncodedTensor(ParameterName(scope, f"encoded.{digest}.{number}"), spec, functions[name])
        for number, (name, (spec, scope)) in enumerate(division.tensors.items())
    }
    _replace(program, division, encoded)
    made = {tensor.name for tensor in encoded.values()}
    kept = tuple(name for name in _parameters(program).values() if name not in made)
    return str(program), encoder_text, SplitProgram(sources, tuple(encoded.values()), tuple(dict.fromkeys(kept)))


def _divide(program: Any) -> _Division:
    """Return which initializers go into the encoder, and what it has to return."""
    top = _operations(program)
    read = [[global_of(op) for op in walk(each) if op.name in (_LOAD, _ADDRESS)] for each in top]
    computed, scopes = _computable(top, program)
    encoding = [each for each in computed if each.computes and scopes[next(iter(each.writes))] is not None]
    dropped = {each.position for each in encoding}
    readers = Counter(name for position, names in enumerate(read) if position not in dropped for name in names)
    for each in reversed(computed):
        if each.position not in dropped and not any(readers[name] for name in each.writes):
            dropped.add(each.position)
            readers.subtract(each.reads)
    tensors = {
        name: (spec, str(scopes[name])) for each in encoding for name, spec in each.writes.items() if readers[name] > 0
    }
    return _Division(frozenset(each.position for each in computed), frozenset(dropped), tensors)


def _computable(top: Sequence[Any], program: Any) -> tuple[list[_Initializer], dict[str, str | None]]:
    """Return the initializers that compute from constants alone, in their order, and what globals depend on.

    Returns:
        The initializers, and by global the scope of a parameter that the global is computed from, None where it depends
        on none.
    """
    mutable = {symbol_of(op) for op in top if op.name == _GLOBAL and "is_mutable" in op.attributes}
    written = Counter(global_of(op) for each in top for op in walk(each) if op.name == _STORE)
    changing = {
        *mutable,
        *changed_globals(program.operation),
        *(name for name, stores in written.items() if stores > 1),
    }
    names = _parameters(program)
    initial = (symbol_of(op) for op in top if op.name == _GLOBAL and _INITIAL in op.attributes)
    scopes = {name: names[name].scope if name in names else None for name in initial if name not in changing}
    computed = []
    for position, op in enumerate(top):
        each = _initializer(position, op) if op.name == _INITIALIZER else None
        if each is None or not scopes.keys() >= {*each.reads} or changing & each.writes.keys():
            continue
        scope = next((scopes[name] for name in each.reads if scopes[name] is not None), None)
        scopes |= dict.fromkeys(each.writes, scope)
        computed.append(each)
    return computed, scopes


def _initializer(position: int, op: Any) -> _Initializer | None:
    """Return what an initializer reads and writes; None where it does more than to compute tensors."""
    inner = list(walk(op))
    if len(op.regions[0].blocks) != 1 or not all(map(_is_pure, inner)):
        return None
    writes = {global_of(each): readable_spec(each.operands[0].type) for each in inner if each.name == _STORE}
    known = {name: spec for name, spec in writes.items() if spec is not None}
    if not known or len(known) < len(writes):
        return None
    reads = tuple(global_of(each) for each in inner if each.name == _LOAD)
    return _Initializer(position, reads, known, any(each.name not in _FREE for each in inner))


def _is_pure(op: Any) -> bool:
    return op.name in _FREE or (op.name.startswith(_COMPUTING) and op.name != _TRACE)


def _make_encoder(program: Any, division: _Division, functions: Mapping[str, str]) -> None:
    """Leave a program nothing but initializers of the encoder, and functions that return the tensors."""
    for position, op in enumerate(_operations(program)):
        if op.name == _FUNCTION or (op.name == _INITIALIZER and position not in division.encoder):
            op.erase()
    types = {symbol_of(op): _type_of(op) for op in _operations(program) if op.name == _GLOBAL}
    for name, function in functions.items():
        made = ir.Module.parse(_getter(name, types[name], function))
        made.body.operations[1].operation.clone(ip=ir.InsertionPoint(program.body))
    run_passes(_CLEAN, program.operation)


def _getter(name: str, type_: Any, function: str) -> str:
    """Return a function that returns a global, with the global, as text."""
    return f"""
util.global private @"{name}" : {type_}
util.func public @{function}() -> !hal.buffer_view attributes {{iree.abi.stub}} {{
  %tensor = util.global.load @"{name}" : {type_}
  %view = hal.tensor.export %tensor : {type_} -> !hal.buffer_view
  util.return %view : !hal.buffer_view
}}"""


def _replace(program: Any, division: _Division, encoded: Mapping[str, EncodedTensor]) -> None:
    """Put parameters in the place of what initializers of a program compute."""
    top = _operations(program)
    for op in top:
        if op.name == _GLOBAL and symbol_of(op) in encoded:
            name = encoded[symbol_of(op)].name
            op.attributes[_INITIAL] = ir.Attribute.parse(f"{_text_of(name)} : {_type_of(op)}")
            op.attributes[_POLICY] = ir.Attribute.parse("#util.inline.never")
    for position in division.dropped:
        top[position].erase()
    run_passes(_CLEAN, program.operation)


def _parameters(program: Any) -> dict[str, ParameterName]:
    """Return the parameters of a program by the globals that hold them."""
    values = {symbol_of(op): str(op.attributes[_INITIAL]) for op in _operations(program) if _INITIAL in op.attributes}
    found = {name: _PARAMETER.match(value) for name, value in values.items()}
    return {name: ParameterName(match[1] or "", match[2]) for name, match in found.items() if match}


def _text_of(name: ParameterName) -> str:
    scope = f'"{name.scope}"::' if name.scope else ""
    return f'#flow.parameter.named<{scope}"{name.key}">'


def _type_of(op: Any) -> Any:
    return ir.TypeAttr(op.attributes["type"]).value


def _require_cpu(program: Any) -> None:
    """Refuse a program of another device than the CPU.

    Raises:
        UserError: See above.
    """
    values = (str(op.attributes[_INITIAL]) for op in _operations(program) if _INITIAL in op.attributes)
    for device in (name for value in values for name in _DEVICE.findall(value)):
        if device != "local":
            raise UserError(f"the program runs on {device}: parameters are encoded for programs on the CPU alone")


def _operations(program: Any) -> list[Any]:
    return [op.operation for op in program.body]
