"""Building of the script: the transform-dialect module that a trace produces.

A decision stands in the script as a ``transform.param.constant`` that carries its name and distribution as
discardable ``mlir_sched.*`` attributes, or, where the consuming op takes only a static number, as an attribute of that
op with the same description beside it. Both forms survive parsing, printing and compilation in IREE 3.13.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import transform
from iree.compiler.dialects.transform import loop as loop_dialect
from iree.compiler.dialects.transform import structured

from mlir_sched.attributes import APPLIED, SEQUENCE
from mlir_sched.trace import Decision
from mlir_sched.transform_scripts.emitter import Emitter, Handle, Place, Sampled
from mlir_sched.transform_scripts.script.form import (
    DISTRIBUTION,
    ELEMENT,
    LOOKUP,
    NAME,
    SKETCH,
    STATIC,
    script_context,
    to_attribute,
)

CASTS = "transform.type_conversion.tensor.cast_shape_dynamic_dims"
"""What lets a call cast tensors to types with sizes that are not known, and back."""


def build_script(sketch: str, emit: Callable[[ScriptEmitter], None], applied: str = SEQUENCE) -> str:
    """Return the text of a module with one sequence.

    Args:
        applied: Value of the annotation that proves that the sequence was applied.
    """
    with script_context(), ir.Location.unknown():
        module = new_library()
        append_sequence(module, SEQUENCE, sketch, emit, applied)
        return print_module(module)


def new_library() -> ir.Module:
    """Return an empty transform library (in the current context)."""
    module = ir.Module.create()
    module.operation.attributes["transform.with_named_sequence"] = ir.UnitAttr.get()
    return module


def append_sequence(
    module: ir.Module, symbol: str, sketch: str, emit: Callable[[ScriptEmitter], None], applied: str
) -> ir.Operation:
    """Append a sequence to a library and return its ``transform.named_sequence``."""
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


def append_dag(handle: ir.Value, leaves: Sequence[ir.Type]) -> ir.Block:
    """Append a comparison of an op and its producers with the ops of a block; return the block, which is still empty.

    Args:
        leaves: Types of the values at which the comparison ends; they are the block's arguments.
    """
    any_value = transform.AnyValueType.get()
    dag = ir.Operation.create(
        "transform.iree.match.cast_compatible_dag_from_root",
        operands=[handle],
        results=[any_value, any_value],
        regions=1,
    )
    return dag.regions[0].blocks.append(*leaves)


def append_inlined_call(
    target: ir.Value, inputs: ir.Value, outputs: ir.Value | None, function: ir.Value, *, any_size: bool = False
) -> None:
    """Append the replacement of an op's results by a function's results; the call is inlined behind the op.

    Args:
        outputs: The results; None for a function without any, which replaces nothing.
        any_size: Whether tensors may have other sizes than those of the function, where these are not known.
    """
    replaced = [] if outputs is None else [outputs]
    call = ir.Operation.create(
        "transform.util.cast_and_call",
        operands=[target, inputs, *replaced, function],
        attributes={
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, len(replaced), 1]),
            "inline_call": ir.UnitAttr.get(),
            "insert_after": ir.UnitAttr.get(),
        },
        regions=1,
    )
    if any_size:
        with ir.InsertionPoint(call.regions[0].blocks.append()):
            ir.Operation.create(CASTS, attributes={"ignore_dynamic_info": ir.UnitAttr.get()})


def propagate() -> Any:
    """Return the failure propagation mode in which a failure of a called sequence ends the compilation."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 1)  # FailurePropagationMode::Propagate


def suppress() -> Any:
    """Return the failure propagation mode in which a failing sequence returns empty handles."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 2)  # FailurePropagationMode::Suppress


def append_choice(decision: Decision) -> None:
    """Append a decision that no op consumes, at the current insertion point."""
    with ir.Location.name(decision.name):
        op = transform.ParamConstantOp(transform.AnyParamType.get(), to_attribute(decision.value))
    op.operation.attributes[NAME] = ir.StringAttr.get(decision.name)
    op.operation.attributes[DISTRIBUTION] = to_attribute(decision.distribution.to_json())


FORGET = """transform.named_sequence @forget(%handle: !transform.any_op {transform.consumed}) {
  transform.yield
}"""
"""A sequence that ends a handle and does nothing."""


class ScriptEmitter(Emitter):
    """An emitter that builds transform ops at the current insertion point."""

    def __init__(self, function: ir.Value) -> None:
        self._function = function
        self._made: list[Handle] = []
        """Handles of loops and copies, outermost first."""
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
            op.operation.attributes[DISTRIBUTION] = to_attribute(decision.distribution.to_json())
        return op.result

    def choice(self, decision: Decision) -> None:
        """Emit a decision that no op consumes."""
        append_choice(decision)

    def match_linalg_ops(self, count: int) -> tuple[Handle, ...]:
        """Match all linalg ops of the function and split them."""
        with ir.Location.name("linalg_ops"):
            interface = ir.Attribute.parse("0 : i32")  # MatchInterfaceEnum::LinalgOp
            matched = structured.MatchOp(self._any_op, self._function, interface=interface).result
        return self.split(matched, count)

    def match_ops(self, names: Sequence[str]) -> Handle:
        """Match all ops of the function that have one of the names."""
        with ir.Location.name("ops"):
            return structured.MatchOp(self._any_op, self._function, ops=to_attribute(list(names))).result

    def match_marked(self, mark: str) -> Handle:
        """Match all ops of the function that are annotated with a unit attribute of the name ``mark``."""
        with ir.Location.name("op"):
            attributes = ir.DictAttr.get({mark: ir.UnitAttr.get()})
            return structured.MatchOp(self._any_op, self._function, op_attrs=attributes).result

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
        self._made.append(op.results[1])
        return op.results[0], op.results[1]

    def tile_using_for(self, target: Handle, sizes: Sequence[int]) -> tuple[Handle, tuple[Handle, ...]]:
        """Emit ``structured.tile_using_for``."""
        with ir.Location.name("tiled"):
            results = tuple(structured.TileUsingForOp(target, sizes=_mixed(sizes)).results)
        self._made += results[1:]
        return results[0], results[1:]

    def tile_reduction_using_for(
        self, target: Handle, sizes: Sequence[int], results: int
    ) -> tuple[Handle, Handle, Handle]:
        """Emit ``structured.tile_reduction_using_for``; sizes are static, so an attribute describes sampled sizes."""
        with ir.Location.name("partial"):
            op = ir.Operation.create(
                "transform.structured.tile_reduction_using_for",
                operands=[target],
                results=[self._any_op] * (2 * results + 2),
                attributes={
                    "reduction_dims": ir.ArrayAttr.get([]),  # all; printing crashes without this attribute
                    "tile_sizes": to_attribute([int(s) for s in sizes]),
                },
            )
        _describe_static(op, "tile_sizes", sizes)
        partial, *combine, loop = list(op.results)[results:]  # behind the fills
        with ir.Location.name("combining"):
            return partial, combine[0] if results == 1 else transform.MergeHandlesOp(combine).result, loop

    def fuse(self, target: Handle, sizes: Sequence[int]) -> tuple[Handle, tuple[Handle, ...]]:
        """Emit ``structured.fuse``."""
        with ir.Location.name("fused"):
            results = tuple(structured.FuseOp(target, tile_sizes=_mixed(sizes)).results)
        return results[0], results[1:]

    def fuse_into_containing_op(self, producer: Handle, loop: Handle) -> tuple[Handle, Handle]:
        """Emit ``structured.fuse_into_containing_op``."""
        with ir.Location.name("fused"):
            op = structured.FuseIntoContainingOp(self._any_op, self._any_op, producer, loop)
        self._made = [op.results[1] if made == loop else made for made in self._made]
        return op.results[0], op.results[1]

    def interchange(self, target: Handle, order: Sequence[int]) -> Handle:
        """Emit ``structured.interchange``."""
        with ir.Location.name("interchanged"):
            return structured.InterchangeOp(target, iterator_interchange=list(order)).result

    def pack(self, target: Handle, sizes: Sequence[int]) -> Handle:
        """Emit ``structured.pack``."""
        with ir.Location.name("packed"):
            typed = transform.OperationType.get("linalg.generic")
            op = structured.PackOp(typed, target, [], static_packed_sizes=[int(size) for size in sizes])
            return transform.CastOp(self._any_op, op.results[0]).result

    def transpose_pack(self, target: Handle, operand: int, order: Sequence[int]) -> Handle:
        """Emit ``structured.pack_transpose``."""
        with ir.Location.name("pack"):
            packed = transform.GetProducerOfOperand(self._any_op, target, operand).result
        with ir.Location.name("packed"):
            op = structured.PackTransposeOp(*[self._any_op] * 3, packed, target, outer_perm=list(order))
            return op.results[0]

    def lower_packs(self) -> None:
        """Emit ``structured.lower_pack``."""
        with ir.Location.name("pack"):
            typed = transform.CastOp(transform.OperationType.get("linalg.pack"), self.match_ops(["linalg.pack"]))
        kinds = ("tensor.pad", "tensor.expand_shape", "linalg.transpose")
        with ir.Location.name("lowered"):
            structured.LowerPackOp(*(transform.OperationType.get(kind) for kind in kinds), typed.result)

    def replace_by_function(self, target: Handle, function: str) -> None:
        """Emit ``util.cast_and_call`` of a function that the script holds beside the sequence, inlined."""
        symbol = self._define(function)
        any_value = transform.AnyValueType.get()
        everything = {"raw_position_list": ir.DenseI64ArrayAttr.get([]), "is_all": ir.UnitAttr.get()}
        with ir.Location.name("body"):
            found = ir.Operation.create(
                LOOKUP, results=[self._any_op], attributes={"symbol": ir.FlatSymbolRefAttr.get(symbol)}
            )
        with ir.Location.name("operands"):
            inputs = ir.Operation.create(
                "transform.get_operand", operands=[target], results=[any_value], attributes=everything
            )
        with ir.Location.name("result"):
            outputs = ir.Operation.create(
                "transform.get_result", operands=[target], results=[any_value], attributes=everything
            )
        append_inlined_call(target, inputs.result, outputs.result, found.result)

    def include(self, texts: Callable[[], Sequence[str]]) -> None:
        """Emit ``transform.include`` of the last of some texts, which the script holds beside the sequence."""
        *_, symbol = map(self._define, texts())
        transform.IncludeOp([], symbol, propagate(), [self._function])

    def _define(self, function: str) -> str:
        """Put a function in front of the sequence, unless the script already has it, and return its name."""
        sequence = ir.InsertionPoint.current.block.owner
        module = sequence.operation.parent
        library = ir.Module.parse(f"module attributes {{transform.with_named_sequence}} {{ {function} }}")
        op = library.body.operations[0].detach_from_parent()
        symbol: str = ir.StringAttr(op.attributes["sym_name"]).value
        known = (other.attributes["sym_name"] for other in module.regions[0].blocks[0])
        if symbol not in [ir.StringAttr(name).value for name in known]:
            ir.InsertionPoint(sequence).insert(op)
        return symbol

    def hoist_operand(
        self, target: Handle, operand: int, zeros: Sequence[str], dimensions: int, loops: int, order: Sequence[int]
    ) -> Handle:
        """Emit ``structured.pad`` and ``structured.hoist_pad``."""
        with ir.Location.name("padded"):
            padded = ir.Operation.create(
                "transform.structured.pad",
                operands=[target],
                results=[self._any_op] * 3,
                attributes={
                    "padding_values": ir.ArrayAttr.get([ir.Attribute.parse(zero) for zero in zeros]),
                    "padding_dimensions": to_attribute(list(range(dimensions))),
                    "nofold_flags": to_attribute([int(index == operand) for index in range(len(zeros))]),
                    "copy_back_op": ir.StringAttr.get("none"),
                },
            ).results[0]
        with ir.Location.name("copy"):
            copy = transform.GetProducerOfOperand(self._any_op, padded, operand).result
            typed = transform.CastOp(transform.OperationType.get("tensor.pad"), copy).result
            structured.HoistPadOp(self._any_op, typed, loops, transpose=list(order))
        return padded

    def share_operands(self, target: Handle, operands: Sequence[int]) -> Handle:
        """Emit ``iree.promote_operands``."""
        with ir.Location.name("sharing"):
            op = ir.Operation.create(
                "transform.iree.promote_operands",
                operands=[target],
                results=[self._any_op] * (1 + len(operands)),
                attributes={"indices": ir.DenseI64ArrayAttr.get(list(operands))},
            )
        self._made += list(op.results)[1:]
        return op.results[0]

    def forget_loops(self) -> None:
        """Emit a call of :data:`FORGET` per handle, innermost first: with a loop's handle those inside of it end."""
        symbol = self._define(FORGET)
        for handle in reversed(self._made):
            transform.IncludeOp([], symbol, propagate(), [handle])
        self._made.clear()

    def peel(self, loop: Handle) -> None:
        """Emit ``loop.peel``."""
        with ir.Location.name("loop"):
            typed = transform.CastOp(transform.OperationType.get("scf.for"), loop).result
            loop_dialect.LoopPeelOp(self._any_op, self._any_op, typed)

    def unroll(self, loop: Handle, factor: int) -> None:
        """Emit ``loop.unroll``; its factor is static, so an attribute describes a sampled factor."""
        op = loop_dialect.LoopUnrollOp(loop, factor=int(factor))
        _describe_static(op.operation, "factor", [factor])

    def vectorize(self, target: Handle, sizes: Sequence[int] = (), *, gathers: bool = False) -> None:
        """Emit ``structured.vectorize``."""
        structured.VectorizeOp(target, _mixed(sizes) or None, vectorize_nd_extract=gathers or None)

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

    def op(
        self,
        name: str,
        target: Handle | None = None,
        *,
        attributes: Mapping[str, str] | None = None,
        replaces_function: bool = False,
    ) -> None:
        """Emit an op without results, or with the function's new handle as its result."""
        with ir.Location.name("function"):
            op = ir.Operation.create(
                name,
                operands=[self._function if target is None else target],
                results=[self._any_op] if replaces_function else [],
                attributes={key: ir.Attribute.parse(text) for key, text in (attributes or {}).items()},
            )
        if replaces_function:
            self._function = op.result

    def op_on_all(self, name: str, kind: str, attributes: Mapping[str, str]) -> None:
        """Emit an op on all ops of a kind."""
        with ir.Location.name("ops"):
            typed = transform.OperationType.get(kind)
            target = structured.MatchOp(typed, self._function, ops=to_attribute([kind])).result
            ir.Operation.create(
                name,
                operands=[target],
                results=[self._any_op],
                attributes={key: ir.Attribute.parse(text) for key, text in attributes.items()},
            )

    def annotate(self, target: Handle | None, name: str, attribute: str | None, *, at: Place | None = None) -> None:
        """Emit ``transform.annotate``."""
        with ir.InsertionPoint.current if at is None else ir.InsertionPoint.after(at):
            param = None
            if attribute is not None:
                with ir.Location.name("value"):
                    value = ir.Attribute.parse(attribute)
                    param = transform.ParamConstantOp(transform.AnyParamType.get(), value).result
            transform.AnnotateOp(self._function if target is None else target, name, param=param)

    def place(self) -> Place:
        """Return the last op of the sequence."""
        operations = ir.InsertionPoint.current.block.operations
        return operations[len(operations) - 1]


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
        op.attributes[STATIC] = to_attribute(descriptions)


def _mixed(sizes: Sequence[int]) -> list[Any]:
    return [s.handle if isinstance(s, Sampled) and s.handle is not None else int(s) for s in sizes]
