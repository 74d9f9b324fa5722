"""The script: the transform-dialect module that a trace produces, and the trace read back from a script.

A decision stands in the script as a ``transform.param.constant`` that carries its name and distribution as
discardable ``mlir_sched.*`` attributes, or, where the consuming op takes a static number only, as an attribute of that
op with the same description beside it. Both survive parsing, printing and compilation in IREE 3.13.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import transform
from iree.compiler.dialects.transform import loop as loop_dialect
from iree.compiler.dialects.transform import structured

from mlir_sched.errors import IllegalTraceError, ScriptError
from mlir_sched.sampling import Value, distribution_from_json
from mlir_sched.trace import Decision, Trace
from mlir_sched.transform_scripts.emitter import Handle, Sampled

STRATEGY = "strategy"
"""Name of the sequence that a stand-alone script holds. Its argument is the dispatch's ``func.func``."""
APPLIED = "mlir_sched.applied"
"""Annotation that the last op of a strategy puts on the function: the proof that it ran to its end."""
SKETCH = "mlir_sched.sketch"
NAME, ELEMENT, DISTRIBUTION, STATIC = (
    "mlir_sched.name",
    "mlir_sched.element",
    "mlir_sched.distribution",
    "mlir_sched.static",
)


@lru_cache(maxsize=1)
def script_context() -> ir.Context:
    """Return this process's context for building and reading scripts."""
    return ir.Context()


def build_script(sketch: str, emit: Callable[[ScriptEmitter], None], applied: str = STRATEGY) -> str:
    """Return the text of a module with one strategy.

    Args:
        sketch: Name of the sketch, kept as an attribute of the strategy.
        emit: Emits the body.
        applied: Value of the annotation that proves application.
    """
    with script_context(), ir.Location.unknown():
        module = new_library()
        append_strategy(module, STRATEGY, sketch, emit, applied)
        return print_module(module)


def new_library() -> ir.Module:
    """Return an empty transform library (in the current context)."""
    module = ir.Module.create()
    module.operation.attributes["transform.with_named_sequence"] = ir.UnitAttr.get()
    return module


def append_strategy(
    module: ir.Module, symbol: str, sketch: str, emit: Callable[[ScriptEmitter], None], applied: str
) -> ir.Operation:
    """Append a strategy to a library and return its ``transform.named_sequence``."""
    any_op = transform.AnyOpType.get()
    with ir.InsertionPoint(module.body):
        sequence = transform.NamedSequenceOp(
            symbol, [any_op], [], arg_attrs=[{"transform.consumed": ir.UnitAttr.get()}]
        )
    sequence.operation.attributes[SKETCH] = ir.StringAttr.get(sketch)
    with ir.InsertionPoint(sequence.body):
        emitter = ScriptEmitter(sequence.bodyTarget)
        emit(emitter)
        emitter.annotate(None, APPLIED, f'"{applied}"')
        transform.YieldOp()
    return sequence.operation


def print_module(module: ir.Module) -> str:
    """Return the canonical text of a script or library; SSA names are those of the decisions and verbs."""
    return str(module.operation.get_asm(use_name_loc_as_prefix=True)) + "\n"


class ScriptEmitter:
    """Builds transform ops at the current insertion point. Satisfies ``emitter.Emitter``."""

    def __init__(self, function: ir.Value) -> None:
        self._function = function
        self._any_op = transform.AnyOpType.get()
        self._i64 = ir.IntegerType.get_signless(64)

    def param(self, decision: Decision, element: int) -> Handle:
        """Emit the number at ``element`` of a decision as a parameter."""
        value = decision.value[element] if isinstance(decision.value, tuple) else decision.value
        name = f"{decision.name}_{element}" if isinstance(decision.value, tuple) else decision.name
        with ir.Location.name(name):
            op = transform.ParamConstantOp(transform.ParamType.get(self._i64), ir.IntegerAttr.get(self._i64, value))
        op.operation.attributes[NAME] = ir.StringAttr.get(decision.name)
        if isinstance(decision.value, tuple):
            op.operation.attributes[ELEMENT] = ir.IntegerAttr.get(self._i64, element)
        if element == 0:
            op.operation.attributes[DISTRIBUTION] = _to_attribute(decision.distribution.to_json())
        return op.result

    def choice(self, decision: Decision) -> None:
        """Emit a decision that no op consumes."""
        with ir.Location.name(decision.name):
            op = transform.ParamConstantOp(transform.AnyParamType.get(), _to_attribute(decision.value))
        op.operation.attributes[NAME] = ir.StringAttr.get(decision.name)
        op.operation.attributes[DISTRIBUTION] = _to_attribute(decision.distribution.to_json())

    def match_linalg_ops(self, count: int) -> tuple[Handle, ...]:
        """Match all linalg ops of the function and split them."""
        with ir.Location.name("linalg_ops"):
            interface = ir.Attribute.parse("0 : i32")  # MatchInterfaceEnum::LinalgOp
            matched = structured.MatchOp(self._any_op, self._function, interface=interface).result
        return self.split(matched, count)

    def match_ops(self, names: Sequence[str]) -> Handle:
        """Match all ops of the function that have one of the names."""
        with ir.Location.name("ops"):
            return structured.MatchOp(self._any_op, self._function, ops=_to_attribute(list(names))).result

    def split(self, handle: Handle, count: int) -> tuple[Handle, ...]:
        """Split a handle of ``count`` ops."""
        if count == 1:
            return (handle,)
        with ir.Location.name("op"):
            return tuple(transform.SplitHandleOp([self._any_op] * count, handle).results)

    def tile_using_forall(self, target: Handle, sizes: Sequence[int], mapping: Sequence[str]) -> tuple[Handle, Handle]:
        """Emit ``structured.tile_using_forall``."""
        mapping_attr = ir.ArrayAttr.get([ir.Attribute.parse(text) for text in mapping])
        with ir.Location.name("tiled"):
            op = structured.TileUsingForallOp(target, tile_sizes=_mixed(sizes), mapping=mapping_attr)
        return op.results[0], op.results[1]

    def tile_using_for(self, target: Handle, sizes: Sequence[int]) -> tuple[Handle, tuple[Handle, ...]]:
        """Emit ``structured.tile_using_for``."""
        with ir.Location.name("tiled"):
            results = tuple(structured.TileUsingForOp(target, sizes=_mixed(sizes)).results)
        return results[0], results[1:]

    def tile_reduction_using_for(self, target: Handle, sizes: Sequence[int]) -> tuple[Handle, Handle, Handle, Handle]:
        """Emit ``structured.tile_reduction_using_for``; its sizes are static, so sampled ones describe themselves."""
        with ir.Location.name("partial"):
            op = ir.Operation.create(
                "transform.structured.tile_reduction_using_for",
                operands=[target],
                results=[self._any_op] * 4,
                attributes={
                    "reduction_dims": ir.ArrayAttr.get([]),  # all of them; printing crashes without it
                    "tile_sizes": _to_attribute([int(s) for s in sizes]),
                },
            )
        _describe_static(op, "tile_sizes", sizes)
        fill, partial, combine, loop = op.results
        return fill, partial, combine, loop

    def fuse(self, target: Handle, sizes: Sequence[int]) -> tuple[Handle, tuple[Handle, ...]]:
        """Emit ``structured.fuse``."""
        with ir.Location.name("fused"):
            results = tuple(structured.FuseOp(target, tile_sizes=_mixed(sizes)).results)
        return results[0], results[1:]

    def fuse_into_containing_op(self, producer: Handle, loop: Handle) -> tuple[Handle, Handle]:
        """Emit ``structured.fuse_into_containing_op``."""
        with ir.Location.name("fused"):
            op = structured.FuseIntoContainingOp(self._any_op, self._any_op, producer, loop)
        return op.results[0], op.results[1]

    def peel(self, loop: Handle) -> None:
        """Emit ``loop.peel``."""
        with ir.Location.name("loop"):
            typed = transform.CastOp(transform.OperationType.get("scf.for"), loop).result
            loop_dialect.LoopPeelOp(self._any_op, self._any_op, typed)

    def unroll(self, loop: Handle, factor: int) -> None:
        """Emit ``loop.unroll``; its factor is static, so a sampled one describes itself."""
        op = loop_dialect.LoopUnrollOp(loop, factor=int(factor))
        _describe_static(op.operation, "factor", [factor])

    def vectorize(self, target: Handle, sizes: Sequence[int] = ()) -> None:
        """Emit ``structured.vectorize``."""
        structured.VectorizeOp(target, _mixed(sizes) or None)

    def apply_patterns(self, *patterns: str) -> None:
        """Emit ``apply_patterns`` on the function."""
        op = transform.ApplyPatternsOp(self._function)
        with ir.InsertionPoint(op.patterns):
            for pattern in patterns:
                ir.Operation.create(f"transform.apply_patterns.{pattern}")

    def cse(self) -> None:
        """Emit ``apply_cse`` on the function."""
        transform.ApplyCommonSubexpressionEliminationOp(self._function)

    def run_pass(self, name: str) -> None:
        """Emit ``apply_registered_pass``; the function's handle is the pass's result from here on."""
        with ir.Location.name("function"):
            self._function = transform.ApplyRegisteredPassOp(self._any_op, self._function, name).result

    def op(self, name: str, target: Handle | None = None) -> None:
        """Emit an op without results."""
        ir.Operation.create(name, operands=[self._function if target is None else target])

    def annotate(self, target: Handle | None, name: str, attribute: str | None) -> None:
        """Emit ``transform.annotate``."""
        param = None
        if attribute is not None:
            with ir.Location.name("value"):
                param = transform.ParamConstantOp(transform.AnyParamType.get(), ir.Attribute.parse(attribute)).result
        transform.AnnotateOp(self._function if target is None else target, name, param=param)


def parse_traces(text: str) -> dict[str, Trace]:
    """Return the trace of every strategy in a script or library, by symbol.

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
    """Return for every strategy, by symbol, its trace or what is wrong with its decisions.

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


def strategy_text(
    text: str, symbol: str = STRATEGY, *, values: Mapping[str, Value] | None = None, distributions: bool = True
) -> str:
    """Return one strategy of a script or library in a form that can be compared: printed, without provenance.

    Args:
        text: A script or library.
        symbol: The strategy's name.
        values: Values to give to its decisions before it is printed.
        distributions: Whether to keep what each decision was drawn from, which depends on the machine.

    Raises:
        ScriptError: The text does not parse, or has no such strategy or decision.
    """
    with script_context(), ir.Location.unknown():
        source, module = parse_module(text), new_library()
        op = find_strategy(source, symbol).operation.clone(ip=ir.InsertionPoint(module.body))
        if values is not None:
            _write_values(op, values)
        for name in [a.name if hasattr(a, "name") else a for a in op.attributes]:
            if name.startswith("mlir_sched.") and name != SKETCH:
                del op.attributes[name]
        for inner in () if distributions else op.regions[0].blocks[0]:
            for name in (DISTRIBUTION, STATIC):
                if name in inner.operation.attributes:
                    del inner.operation.attributes[name]
        op.attributes["sym_name"] = ir.StringAttr.get(STRATEGY)
        return str(module)


def find_strategy(module: ir.Module, symbol: str) -> Any:
    """Return the named strategy's sequence.

    Raises:
        ScriptError: There is none.
    """
    for op in module.body:
        if SKETCH in op.attributes and ir.StringAttr(op.attributes["sym_name"]).value == symbol:
            return op
    raise ScriptError(f"the script has no strategy @{symbol}")


def extract_strategy(library: str, symbol: str) -> str:
    """Return a strategy of a library as a stand-alone script.

    Raises:
        ScriptError: The library does not parse or has no such strategy.
    """
    with script_context(), ir.Location.unknown():
        source = parse_module(library)
        module = new_library()
        copy = find_strategy(source, symbol).operation.clone(ip=ir.InsertionPoint(module.body))
        copy.attributes["sym_name"] = ir.StringAttr.get(STRATEGY)
        return print_module(module)


def replace_strategy(library: str, symbol: str, script: str) -> str:
    """Return a library with one strategy's body taken from a stand-alone script; matcher and provenance stay.

    Raises:
        ScriptError: One of them does not parse or has no such strategy.
    """
    with script_context(), ir.Location.unknown():
        module, source = parse_module(library), parse_module(script)
        old = find_strategy(module, symbol).operation
        new = find_strategy(source, STRATEGY).operation.clone(ip=ir.InsertionPoint(old))
        for name in [a.name if hasattr(a, "name") else a for a in old.attributes]:
            new.attributes[name] = old.attributes[name]
        old.erase()
        return print_module(module)


def _write_values(sequence: Any, values: Mapping[str, Value]) -> None:
    """Set every described number of a strategy."""

    def number(name: str, element: int) -> Any:
        if name not in values:
            raise ScriptError(f"no value is known for {name}")
        value = values[name]
        return value[element] if isinstance(value, tuple) and element >= 0 else value

    for op in sequence.regions[0].blocks[0]:
        attributes = op.operation.attributes
        if NAME in attributes:
            element = int(ir.IntegerAttr(attributes[ELEMENT])) if ELEMENT in attributes else -1
            attributes["value"] = _to_attribute(number(ir.StringAttr(attributes[NAME]).value, element))
        for description in _from_attribute(attributes[STATIC]) if STATIC in attributes else ():
            name = description["attribute"]
            old = _from_attribute(attributes[name])
            new = number(description["name"], description["element"])
            if isinstance(old, list):
                new = [*old[: description["index"]], new, *old[description["index"] + 1 :]]
            is_dense = isinstance(attributes[name], ir.DenseI64ArrayAttr)
            attributes[name] = ir.DenseI64ArrayAttr.get(new) if is_dense else _to_attribute(new)


def _read_trace(sequence: ir.Operation) -> Trace:
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
    decisions = tuple(_decision(name, elements, distributions.get(name)) for name, elements in values.items())
    return Trace(ir.StringAttr(sequence.attributes[SKETCH]).value, decisions)


def _described(sequence: ir.Operation) -> Iterator[tuple[str, int, Any, Any]]:
    """Yield (name, element, value, distribution or None) of every described number; element -1 is a whole value."""
    for op in sequence.regions[0].blocks[0]:
        attributes = op.operation.attributes
        if NAME in attributes:
            distribution = _from_attribute(attributes[DISTRIBUTION]) if DISTRIBUTION in attributes else None
            element = int(ir.IntegerAttr(attributes[ELEMENT])) if ELEMENT in attributes else -1
            yield ir.StringAttr(attributes[NAME]).value, element, _from_attribute(attributes["value"]), distribution
        if STATIC in attributes:
            for description in _from_attribute(attributes[STATIC]):
                value = _from_attribute(attributes[description["attribute"]])
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


def _describe_static(op: ir.Operation, attribute: str, numbers: Sequence[int]) -> None:
    descriptions = [
        {
            "name": number.decision.name,
            "element": number.element if isinstance(number.decision.value, tuple) else -1,
            "distribution": number.decision.distribution.to_json(),
            "attribute": attribute,
            "index": index,
        }
        for index, number in enumerate(numbers)
        if isinstance(number, Sampled)
    ]
    if descriptions:
        op.attributes[STATIC] = _to_attribute(descriptions)


def _mixed(sizes: Sequence[int]) -> list[Any]:
    return [s.handle if isinstance(s, Sampled) and s.handle is not None else int(s) for s in sizes]


def _to_attribute(data: Any) -> ir.Attribute:
    match data:
        case bool():
            return ir.BoolAttr.get(data)
        case int():
            return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), data)
        case float():
            return ir.FloatAttr.get(ir.F64Type.get(), data)
        case str():
            return ir.StringAttr.get(data)
        case list() | tuple():
            return ir.ArrayAttr.get([_to_attribute(item) for item in data])
        case dict():
            return ir.DictAttr.get({key: _to_attribute(value) for key, value in data.items()})
    raise TypeError(f"no attribute stands for {data!r}")


def _from_attribute(attribute: ir.Attribute) -> Any:
    match attribute:
        case ir.BoolAttr() | ir.StringAttr() | ir.FloatAttr():
            return attribute.value
        case ir.IntegerAttr():
            return int(attribute)
        case ir.DenseI64ArrayAttr():
            return list(attribute)
        case ir.ArrayAttr():
            return [_from_attribute(item) for item in attribute]
        case ir.DictAttr():
            return {item.name: _from_attribute(item.attr) for item in attribute}
    raise ScriptError(f"unexpected attribute {attribute}")
