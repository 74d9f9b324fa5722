"""Reading of scripts: traces of sequences, their text for comparison, sequences taken from a library and put back."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from iree.compiler import ir

from mlir_sched.attributes import SEQUENCE
from mlir_sched.errors import IllegalTraceError, ScriptError
from mlir_sched.sampling import Value, distribution_from_json
from mlir_sched.trace import Decision, Trace
from mlir_sched.transform_scripts.script.building import new_library, print_module
from mlir_sched.transform_scripts.script.form import (
    DISTRIBUTION,
    ELEMENT,
    LOOKUP,
    NAME,
    SKETCH,
    STATIC,
    from_attribute,
    script_context,
    to_attribute,
)

_REFERENCES = {LOOKUP: "symbol", "transform.include": "target"}
"""The ops of scripts that refer to symbols, each with the attribute that holds the symbol."""


def parse_traces(text: str) -> dict[str, Trace]:
    """Return the trace of every sequence in a script or library, by symbol.

    Raises:
        ScriptError: The text is not MLIR, or a decision is incomplete or contradicts itself.
        IllegalTraceError: A decision was edited to a value outside its support.
    """
    traces = {}
    for symbol, found in parse_each_trace(text).items():
        if not isinstance(found, Trace):
            raise found
        traces[symbol] = found
    return traces


def parse_each_trace(text: str) -> dict[str, Trace | ScriptError | IllegalTraceError]:
    """Return for every sequence, by symbol, its trace or the error in its decisions.

    Raises:
        ScriptError: The text is not MLIR.
    """
    with script_context():
        module = parse_module(text)
        sequences = [op for op in module.body if SKETCH in op.attributes]
        return {ir.StringAttr(op.attributes["sym_name"]).value: _try_read_trace(op.operation) for op in sequences}


def parse_module(text: str) -> ir.Module:
    """Return the module of a text (in the current context).

    Raises:
        ScriptError: The text is not MLIR.
    """
    try:
        return ir.Module.parse(text)
    except ir.MLIRError as error:
        raise ScriptError(f"the script does not parse: {first_diagnostic(error)}") from error


def _try_read_trace(sequence: ir.Operation) -> Trace | ScriptError | IllegalTraceError:
    try:
        return _read_trace(sequence)
    except (ScriptError, IllegalTraceError) as error:
        return error


def first_diagnostic(error: ir.MLIRError) -> str:
    """Return the first diagnostic of an MLIR error with its place, on one line."""
    diagnostics = getattr(error, "error_diagnostics", ())
    if not diagnostics:
        return str(error).splitlines()[0]
    return f"{diagnostics[0].location}: {diagnostics[0].message}"


def sequence_text(
    text: str, symbol: str = SEQUENCE, *, values: Mapping[str, Value] | None = None, distributions: bool = True
) -> str:
    """Return one sequence of a script or library as text for comparison, without provenance.

    Args:
        values: Values to give to the sequence's decisions before printing.
        distributions: Whether to keep the decisions' distributions, which depend on the machine.

    Raises:
        ScriptError: The text does not parse, or has no such sequence or decision.
    """
    with script_context(), ir.Location.unknown():
        module = parse_module(text)  # an operation does not keep its module
        return _text_of(find_sequence(module, symbol).operation, values, distributions=distributions)


def sequence_texts(text: str, symbols: Collection[str]) -> dict[str, str]:
    """Return what :func:`sequence_text` returns for some sequences of a library, by symbol.

    Raises:
        ScriptError: The text does not parse, or lacks one of the sequences.
    """
    with script_context(), ir.Location.unknown():
        module = parse_module(text)
        return {symbol: _text_of(find_sequence(module, symbol).operation) for symbol in symbols}


def _text_of(sequence: ir.Operation, values: Mapping[str, Value] | None = None, *, distributions: bool = True) -> str:
    """Return a sequence as text for comparison; the other arguments are those of :func:`sequence_text`."""
    module = new_library()
    op = _copy_sequence(sequence, ir.InsertionPoint(module.body))
    if values is not None:
        _write_values(op, values)
    for name in [a.name if hasattr(a, "name") else a for a in op.attributes]:
        if name.startswith("mlir_sched.") and name != SKETCH:
            del op.attributes[name]
    for inner in () if distributions else op.regions[0].blocks[0]:
        for name in (DISTRIBUTION, STATIC):
            if name in inner.operation.attributes:
                del inner.operation.attributes[name]
    op.attributes["sym_name"] = ir.StringAttr.get(SEQUENCE)
    return str(module)


def find_sequence(module: ir.Module, symbol: str) -> Any:
    """Return the op of the sequence with a name.

    Raises:
        ScriptError: The module has no such sequence.
    """
    for op in module.body:
        if SKETCH in op.attributes and ir.StringAttr(op.attributes["sym_name"]).value == symbol:
            return op
    raise ScriptError(f"the script has no sequence @{symbol}")


def extract_sequence(library: str, symbol: str) -> str:
    """Return a sequence of a library as a stand-alone script.

    Raises:
        ScriptError: The library does not parse or has no such sequence.
    """
    with script_context(), ir.Location.unknown():
        source = parse_module(library)
        module = new_library()
        copy = _copy_sequence(find_sequence(source, symbol).operation, ir.InsertionPoint(module.body))
        copy.attributes["sym_name"] = ir.StringAttr.get(SEQUENCE)
        return print_module(module)


def replace_sequence(library: str, symbol: str, script: str) -> str:
    """Return a library with one sequence's body taken from a stand-alone script; matcher and provenance stay.

    Raises:
        ScriptError: The library or the script does not parse or lacks its sequence.
    """
    with script_context(), ir.Location.unknown():
        module, source = parse_module(library), parse_module(script)
        old = find_sequence(module, symbol).operation
        new = _copy_sequence(find_sequence(source, SEQUENCE).operation, ir.InsertionPoint(old))
        for name in [a.name if hasattr(a, "name") else a for a in old.attributes]:
            new.attributes[name] = old.attributes[name]
        old.erase()
        return print_module(module)


def _copy_sequence(sequence: ir.Operation, place: ir.InsertionPoint) -> ir.Operation:
    """Copy a sequence, and in front of it what it includes or puts into the payload and the target block lacks."""
    known = {symbol_of(op) for op in place.block}
    beside = {symbol_of(op): op.operation for op in sequence.parent.regions[0].blocks[0]}
    used = set[str]()
    _add_used(sequence, beside, used)
    for symbol, op in beside.items():
        if symbol in used - known:
            op.clone(ip=place)
    return sequence.clone(ip=place)


def _add_used(op: ir.Operation, beside: Mapping[str, ir.Operation], used: set[str]) -> None:
    """Add the symbols that an op of a script refers to, and those that these refer to, to the symbols in use."""
    if op.name in _REFERENCES:
        symbol = ir.FlatSymbolRefAttr(op.attributes[_REFERENCES[op.name]]).value
        if symbol in beside and symbol not in used:
            used.add(symbol)
            _add_used(beside[symbol], beside, used)
    for region in op.regions:
        for inner in (inner for block in region for inner in block):
            _add_used(inner.operation, beside, used)


def symbol_of(op: Any) -> str:
    """Return the symbol of an op; empty for an op without one."""
    return ir.StringAttr(op.attributes["sym_name"]).value if "sym_name" in op.attributes else ""


def _write_values(sequence: Any, values: Mapping[str, Value]) -> None:
    """Set every number of a sequence that belongs to a decision."""

    def number(name: str, element: int) -> Any:
        if name not in values:
            raise ScriptError(f"no value is known for {name}")
        value = values[name]
        return value[element] if isinstance(value, tuple) and element >= 0 else value

    for op in sequence.regions[0].blocks[0]:
        attributes = op.operation.attributes
        if NAME in attributes:
            element = int(ir.IntegerAttr(attributes[ELEMENT])) if ELEMENT in attributes else -1
            attributes["value"] = to_attribute(number(ir.StringAttr(attributes[NAME]).value, element))
        for description in from_attribute(attributes[STATIC]) if STATIC in attributes else ():
            name = description["attribute"]
            old = from_attribute(attributes[name])
            new = number(description["name"], description["element"])
            if isinstance(old, list):
                new = [*old[: description["index"]], new, *old[description["index"] + 1 :]]
            is_dense = isinstance(attributes[name], ir.DenseI64ArrayAttr)
            attributes[name] = ir.DenseI64ArrayAttr.get(new) if is_dense else to_attribute(new)


def _read_trace(sequence: ir.Operation) -> Trace:
    return Trace(ir.StringAttr(sequence.attributes[SKETCH]).value, read_decisions(sequence))


def read_decisions(sequence: ir.Operation) -> tuple[Decision, ...]:
    """Return the decisions that stand in a sequence, in their order.

    Raises:
        ScriptError: A decision is incomplete or contradicts itself.
        IllegalTraceError: A decision was edited to a value outside its support.
    """
    values: dict[str, dict[int, Any]] = {}
    distributions: dict[str, Any] = {}
    for found in _described(sequence):
        name, element, value, distribution = found
        known = values.setdefault(name, {})
        if element in known and known[element] != value:
            raise ScriptError(f"{name} is {known[element]} in one place and {value} in another; give both one value")
        known[element] = value
        if distribution is not None:
            distributions[name] = distribution
    return tuple(_decision(name, elements, distributions.get(name)) for name, elements in values.items())


def _described(sequence: ir.Operation) -> Iterator[tuple[str, int, Any, Any]]:
    """Yield (name, element, value, distribution or None) per number of a decision; element -1 is a whole value."""
    for op in sequence.regions[0].blocks[0]:
        attributes = op.operation.attributes
        if NAME in attributes:
            distribution = from_attribute(attributes[DISTRIBUTION]) if DISTRIBUTION in attributes else None
            element = int(ir.IntegerAttr(attributes[ELEMENT])) if ELEMENT in attributes else -1
            yield ir.StringAttr(attributes[NAME]).value, element, from_attribute(attributes["value"]), distribution
        if STATIC in attributes:
            for description in from_attribute(attributes[STATIC]):
                value = from_attribute(attributes[description["attribute"]])
                value = value[description["index"]] if isinstance(value, list) else value
                yield description["name"], description["element"], value, description["distribution"]


def _decision(name: str, elements: Mapping[int, Any], distribution: Any) -> Decision:
    if distribution is None:
        raise ScriptError(f"{name} has lost its {DISTRIBUTION} attribute; restore it from the original script")
    try:
        known = distribution_from_json(distribution)
    except ValueError as error:
        raise ScriptError(f"{name}: {error}") from error
    if set(elements) == {-1}:
        value = elements[-1]
        return Decision(name, known, tuple(value) if isinstance(value, list) else value)
    if sorted(elements) != list(range(len(elements))):
        raise ScriptError(f"{name} has lost some of its elements; restore them from the original script")
    return _checked_decision(name, known, tuple(elements[i] for i in range(len(elements))))


def _checked_decision(name: str, distribution: Any, value: tuple[int, ...]) -> Decision:
    try:
        return Decision(name, distribution, value)
    except IllegalTraceError as error:
        raise IllegalTraceError(f"{error}; choose another value") from error
