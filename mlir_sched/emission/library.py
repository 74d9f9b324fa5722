"""The transform library: one matcher and one strategy per tuned dispatch, and the entries that IREE calls.

IREE calls ``@__kernel_config`` with every dispatch's ``func.func`` before it chooses a lowering strategy
(MaterializeUserConfigs.cpp). A matcher compares the whole dispatch, from its loads to its store, so that a strategy
never meets an op that other ops were fused with. Matching is finished before the first strategy runs, because a
strategy consumes the function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import transform

from mlir_sched.compiler.library_flags import DISPATCH_ENTRY, PROGRAM_ENTRY
from mlir_sched.emission.matcher import append_matcher
from mlir_sched.errors import ScriptError
from mlir_sched.rewrite_script import RewriteScript
from mlir_sched.space import DesignSpace
from mlir_sched.trace import Trace
from mlir_sched.transform_scripts.script import append_strategy, new_library, print_module
from mlir_sched.transform_scripts.script_form import script_context

REWRITE = "mlir_sched.rewrite"
"""Attribute of the library's program entry that names the rewrite."""


@dataclass(frozen=True)
class Strategy:
    """One entry of a library.

    Attributes:
        symbol: Name of its sequence, unique in the library; also the value of the annotation that proves application.
        source: The task's program (``Task.source``), from which the matcher is made.
        space: The design space of the trace.
        trace: The decisions.
        provenance: Attributes kept beside the strategy (``mlir_sched.<name>``), as text.
    """

    symbol: str
    source: str
    space: DesignSpace
    trace: Trace
    provenance: dict[str, str] = field(default_factory=dict)


def build_library(strategies: Sequence[Strategy], rewrite: RewriteScript | None = None) -> str:
    """Return the text of a library that applies each strategy to the dispatch it was tuned for.

    Of strategies whose dispatches no matcher can tell apart the first is kept (see :func:`indistinct`).

    Args:
        strategies: What is done to dispatches.
        rewrite: What is done to the program before its dispatches are formed.

    Raises:
        MlirSchedError: A task's program has no store to match from.
    """
    left_out = indistinct(strategies)
    strategies = [strategy for strategy in strategies if strategy.symbol not in left_out]
    with script_context(), ir.Location.unknown():
        module = ir.Module.parse(rewrite.text) if rewrite else new_library()
        for strategy in strategies:
            sequence = append_strategy(
                module,
                strategy.symbol,
                strategy.trace.sketch,
                lambda emitter, s=strategy: s.space.emit(s.trace, emitter),  # type: ignore[misc]
                strategy.symbol,
            )
            for name, text in strategy.provenance.items():
                sequence.attributes[f"mlir_sched.{name}"] = ir.StringAttr.get(text)
            append_matcher(module, _matcher(strategy.symbol), strategy.source, strategy.space.dispatch)
        _append_program_entry(module, rewrite)
        _append_dispatch_entry(module, [strategy.symbol for strategy in strategies])
        return print_module(module)


def indistinct(strategies: Sequence[Strategy]) -> dict[str, str]:
    """Return, by symbol, the strategies that a library must leave out, each with the earlier one it would collide with.

    Dispatches collide when they differ only in constants that a body captures, which a matcher cannot see. Both
    strategies would then apply to both dispatches, and the second to run would find nothing left to schedule.

    Raises:
        MlirSchedError: A task's program has no store to match from.
    """
    first: dict[str, str] = {}
    collisions: dict[str, str] = {}
    for strategy in strategies:
        known = first.setdefault(_matcher_text(strategy), strategy.symbol)
        if known != strategy.symbol:
            collisions[strategy.symbol] = known
    return collisions


def provenance_of(library: str) -> dict[str, dict[str, str]]:
    """Return the provenance attributes of every strategy of a library, by symbol.

    Raises:
        ScriptError: The text does not parse.
    """
    with script_context():
        try:
            module = ir.Module.parse(library)
        except ir.MLIRError as error:
            raise ScriptError(f"the library does not parse: {error}") from error
        found: dict[str, dict[str, str]] = {}
        for op in module.body:
            attributes = {a.name: a.attr for a in _named_attributes(op)}
            if "mlir_sched.sketch" in attributes:
                found[ir.StringAttr(attributes["sym_name"]).value] = {
                    name.removeprefix("mlir_sched."): ir.StringAttr(value).value
                    for name, value in attributes.items()
                    if name.startswith("mlir_sched.")
                }
        return found


def _named_attributes(op: Any) -> Iterator[Any]:
    attributes = op.operation.attributes
    return (attributes[i] for i in range(len(attributes)))


def _matcher_text(strategy: Strategy) -> str:
    with script_context(), ir.Location.unknown():
        module = new_library()
        append_matcher(module, "match", strategy.source, strategy.space.dispatch)
        return str(module)


def _matcher(symbol: str) -> str:
    return f"match_{symbol}"


def _append_entry(module: Any, name: str, use: str) -> Any:
    """Append a named sequence with one handle, and return it; ``use`` is what becomes of the handle."""
    with ir.InsertionPoint(module.body):
        return transform.NamedSequenceOp(name, [transform.AnyOpType.get()], [], arg_attrs=[{use: ir.UnitAttr.get()}])


def _propagate() -> Any:
    """Return the failure propagation mode in which a failure ends the compilation."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 1)  # FailurePropagationMode::Propagate


def _append_program_entry(module: Any, rewrite: RewriteScript | None) -> None:
    """Append the sequence that runs on the whole program."""
    entry = _append_entry(module, PROGRAM_ENTRY, "transform.consumed" if rewrite else "transform.readonly")
    if rewrite:
        entry.operation.attributes[REWRITE] = ir.StringAttr.get(rewrite.name)
    with ir.InsertionPoint(entry.body):
        if rewrite:
            transform.IncludeOp([transform.AnyOpType.get()], rewrite.symbol, _propagate(), [entry.bodyTarget])
        transform.YieldOp()


def _append_dispatch_entry(module: Any, symbols: Sequence[str]) -> None:
    any_op = transform.AnyOpType.get()
    entry = _append_entry(module, DISPATCH_ENTRY, "transform.readonly")
    with ir.InsertionPoint(entry.body):
        found = []
        for symbol in symbols:
            with ir.Location.name("stores"):
                found.append(transform.CollectMatchingOp([any_op], entry.bodyTarget, _matcher(symbol)).results[0])
        for symbol, handle in zip(symbols, found, strict=True):
            each = transform.ForeachOp([], [handle])
            with ir.InsertionPoint(each.body):
                with ir.Location.name("function"):
                    parent = transform.GetParentOp(
                        any_op, each.bodyTargets[0], op_name="func.func", deduplicate=True
                    ).result
                transform.IncludeOp([], symbol, _propagate(), [parent])
                transform.YieldOp()
        transform.YieldOp()
