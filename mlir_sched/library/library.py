"""The transform library: one matcher and one tuned sequence per dispatch, and the entries that IREE calls.

IREE calls ``@__kernel_config`` with every dispatch's ``func.func`` before it chooses a lowering strategy
(MaterializeUserConfigs.cpp). A matcher compares the whole dispatch, from its loads to its stores, so that a sequence
never meets an op that other ops were fused with. The first matcher that fits claims the dispatch, so that no dispatch
gets two sequences. Matching is finished before the first sequence runs, because a sequence consumes the function.

What reads a library raises a ScriptError where its text does not parse.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import transform

from mlir_sched.attributes import APPLIED, EMISSION, SEQUENCE_CHOSEN
from mlir_sched.compiler.flags import DISPATCH_ENTRY, PROGRAM_ENTRY
from mlir_sched.compiler.operations import first_function, named_attributes, producer, walk
from mlir_sched.compiler.worker.preconfiguration import prepared_programs
from mlir_sched.errors import ScriptError
from mlir_sched.library import RewriteScript
from mlir_sched.library.matcher import append_matcher
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.trace import Decision, Trace
from mlir_sched.transform_scripts.script.building import (
    append_choice,
    append_sequence,
    new_library,
    print_module,
    propagate,
    suppress,
)
from mlir_sched.transform_scripts.script.form import SKETCH, script_context
from mlir_sched.transform_scripts.script.reading import (
    parse_module,
    read_decisions,
    sequence_text,
    sequence_texts,
    symbol_of,
)

REWRITE = "mlir_sched.rewrite"
"""Attribute of the library's program entry that names the rewrite."""
_REWRITE = re.compile(rf'\b{re.escape(REWRITE)} = "([^"]*)"')


@dataclass(frozen=True)
class TunedSequence:
    """The named sequence that schedules one tuned dispatch, in a library.

    Attributes:
        symbol: Name of its sequence, unique in the library; also the value of the annotation that proves application.
        source: The task's program (``Task.source``), from which the matcher is made.
        provenance: Attributes kept beside the sequence (``mlir_sched.<name>``), as text.
        dispatch: The dispatch's symbol in the model.
        script: The script that was measured; empty when no script was measured.
        code: Digest of the code that was measured (``CompileResult.code``); empty when it is not known.
        only: Names of the dispatches that may match, where no matcher tells them from other dispatches of the program;
            when empty, every name may match.
    """

    symbol: str
    source: str
    space: DesignSpace
    trace: Trace
    provenance: Mapping[str, str] = field(default_factory=dict)
    dispatch: str = ""
    script: str = ""
    code: str = ""
    only: tuple[str, ...] = ()


def sequence_symbol(number: int, name: str) -> str:
    """Return the symbol of a dispatch's sequence: ``tuned_<number>_<what it computes>``."""
    what = re.sub(r"^.*?_?dispatch_\d+_", "", name)
    return f"tuned_{number}_{re.sub(r'[^A-Za-z0-9_]', '_', what)}"


def build_library(
    sequences: Sequence[TunedSequence],
    rewrite: RewriteScript | None = None,
    *,
    program: Trace | None = None,
    emission: Callable[[str], str] | None = None,
) -> str:
    """Return the text of a library that applies each sequence to the dispatch it was tuned for.

    Args:
        sequences: The sequences; where several match a dispatch, the first applies.
        program: The decisions about the program, which lead to the rewrite and to the compiler's flags.
        emission: Returns the name of the emission that the library states, given its text without that name; None for
            a library that states none.

    Raises:
        MlirSchedError: A task's program has no store to match from.
        ScriptError: A trace no longer gives the script that was measured.
    """
    with script_context(), ir.Location.unknown():
        module = ir.Module.parse(rewrite.text) if rewrite else new_library()
        prepared = prepared_programs([sequence.source for sequence in sequences])
        for sequence, of_task in zip(sequences, prepared.body, strict=True):
            function = first_function(of_task.operation)
            _append_sequence(module, sequence)
            append_matcher(module, _matcher(sequence.symbol), function, claimed=SEQUENCE_CHOSEN, only=sequence.only)
            _append_trial(module, sequence.symbol)
        _append_program_entry(module, rewrite, program)
        _append_dispatch_entry(module, [sequence.symbol for sequence in sequences])
        text = print_module(module)
        if emission is not None:
            module.operation.attributes[EMISSION] = ir.StringAttr.get(emission(text))
            text = print_module(module)
    _require_measured_scripts(text, [sequence for sequence in sequences if sequence.script])
    return text


def _require_measured_scripts(library: str, sequences: Sequence[TunedSequence]) -> None:
    """Compare the sequences of a library with the scripts that were measured.

    Raises:
        ScriptError: A sequence is another script than the one that was measured.
    """
    texts = sequence_texts(library, [sequence.symbol for sequence in sequences]) if sequences else {}
    for sequence in sequences:
        if texts[sequence.symbol] != sequence_text(sequence.script):
            raise ScriptError(f"@{sequence.symbol}: the script to emit is not the one that was measured")


def provenance_of(library: str) -> dict[str, dict[str, str]]:
    """Return the provenance attributes of every sequence of a library, by symbol."""
    with script_context():
        return _provenance(_parsed(library))


def with_provenance(library: str, provenance: Mapping[str, Mapping[str, str]]) -> str:
    """Return a library with other provenance attributes of some sequences, given by symbol; further ones stay."""
    with script_context(), ir.Location.unknown():
        module = parse_module(library)
        for op in module.body:
            for name, text in provenance.get(symbol_of(op), {}).items():
                op.attributes[f"mlir_sched.{name}"] = ir.StringAttr.get(text)
        return print_module(module)


def scripts_of(library: str) -> dict[str, dict[str, str]]:
    """Return the provenance attributes of every script of a library, by what the script marks its dispatches with.

    mlir-sched's own sequences mark dispatches with their symbol. A script that was written by hand has no provenance.
    """
    with script_context():
        module = _parsed(library)
        marks = [mark for op in walk(module.operation) if (mark := _mark(op))]
        return {mark: {} for mark in marks} | _provenance(module)


def _parsed(library: str) -> ir.Module:
    try:
        return ir.Module.parse(library)
    except ir.MLIRError as error:
        raise ScriptError(f"the library does not parse: {error}") from error


def _provenance(module: ir.Module) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for op in module.body:
        attributes = {a.name: a.attr for a in named_attributes(op.operation)}
        if SKETCH in attributes:
            found[ir.StringAttr(attributes["sym_name"]).value] = {
                name.removeprefix("mlir_sched."): ir.StringAttr(value).value
                for name, value in attributes.items()
                if name.startswith("mlir_sched.")
            }
    return found


def _mark(op: Any) -> str:
    """Return the name that an op marks dispatches with; empty for any other op."""
    if op.name != "transform.annotate" or ir.StringAttr(op.attributes["name"]).value != APPLIED or len(op.operands) < 2:
        return ""
    made = producer(op.operands[1])
    value = made.attributes["value"] if made is not None and "value" in made.attributes else None
    return str(ir.StringAttr(value).value) if isinstance(value, ir.StringAttr) else ""


def program_decisions(library: str) -> tuple[Decision, ...]:
    """Return the decisions about the program that a library states; none for a library without any.

    Raises:
        ScriptError: A decision is incomplete.
        IllegalTraceError: A decision was edited to a value outside its support.
    """
    with script_context():
        module = parse_module(library)
        entries = [op for op in module.body if symbol_of(op) == PROGRAM_ENTRY]
        return tuple(decision for entry in entries for decision in read_decisions(entry.operation))


def has_rewrite(library: str, rewrite: RewriteScript | None) -> bool:
    """Say whether a library rewrites the program as a rewrite's script does."""
    if rewrite is None:
        return not rewrite_of(library)
    with script_context():
        module, made = parse_module(library), parse_module(rewrite.text)
        own = {symbol_of(op): str(op) for op in module.body}
        return rewrite_of(library) == rewrite.name and all(own.get(symbol_of(op)) == str(op) for op in made.body)


def with_rewrite(library: str, old: RewriteScript | None, new: RewriteScript | None, program: Trace) -> str:
    """Return a library with another rewrite of the program; the sequences of dispatches stay as they are."""
    with script_context(), ir.Location.unknown():
        module = parse_module(new.text) if new else new_library()
        _append_program_entry(module, new, program)
        source, before = parse_module(library), parse_module(old.text) if old else new_library()
        gone = {PROGRAM_ENTRY, *map(symbol_of, before.body)}
        for op in source.body:
            if symbol_of(op) not in gone:
                op.operation.clone(ip=ir.InsertionPoint(module.body))
        if EMISSION in source.operation.attributes:
            module.operation.attributes[EMISSION] = source.operation.attributes[EMISSION]
        return print_module(module)


def rewrite_of(library: str) -> str:
    """Return the name of the rewrite that a library makes of the whole program; empty when it makes none."""
    found = _REWRITE.search(library)
    return found[1] if found else ""


def _matcher(symbol: str) -> str:
    return f"match_{symbol}"


def _trial(symbol: str) -> str:
    return f"try_{symbol}"


def _append_entry(module: Any, name: str, use: str) -> Any:
    """Append a named sequence with one handle, and return it; ``use`` says whether the handle is consumed."""
    with ir.InsertionPoint(module.body):
        return transform.NamedSequenceOp(name, [transform.AnyOpType.get()], [], arg_attrs=[{use: ir.UnitAttr.get()}])


def _append_program_entry(module: Any, rewrite: RewriteScript | None, program: Trace | None) -> None:
    """Append the sequence that runs on the whole program, with the decisions about the program."""
    entry = _append_entry(module, PROGRAM_ENTRY, "transform.consumed" if rewrite else "transform.readonly")
    if rewrite:
        entry.operation.attributes[REWRITE] = ir.StringAttr.get(rewrite.name)
    with ir.InsertionPoint(entry.body):
        for decision in program.decisions if program else ():
            append_choice(decision)
        if rewrite:
            transform.IncludeOp([transform.AnyOpType.get()], rewrite.symbol, propagate(), [entry.bodyTarget])
        transform.YieldOp()


def _append_sequence(module: Any, sequence: TunedSequence) -> None:
    op = append_sequence(
        module,
        sequence.symbol,
        sequence.trace.sketch,
        lambda emitter: sequence.space.emit(sequence.trace, emitter),
        sequence.symbol,
    )
    for name, text in sequence.provenance.items():
        op.attributes[f"mlir_sched.{name}"] = ir.StringAttr.get(text)


def _append_trial(module: Any, symbol: str) -> None:
    """Append the sequence in which a matcher may fail: it returns the function, or nothing.

    A sequence that suppresses failures goes on with its next op, so it holds the matcher's call alone.
    """
    any_op = transform.AnyOpType.get()
    with ir.InsertionPoint(module.body):
        sequence = transform.NamedSequenceOp(
            _trial(symbol), [any_op], [any_op], arg_attrs=[{"transform.readonly": ir.UnitAttr.get()}]
        )
    with ir.InsertionPoint(sequence.body):
        with ir.Location.name("matched"):
            found = transform.IncludeOp([any_op], _matcher(symbol), propagate(), [sequence.bodyTarget]).results
        transform.YieldOp(found)


def _append_dispatch_entry(module: Any, symbols: Sequence[str]) -> None:
    any_op = transform.AnyOpType.get()
    entry = _append_entry(module, DISPATCH_ENTRY, "transform.readonly")
    with ir.InsertionPoint(entry.body):
        found = []
        for symbol in symbols:
            with ir.Location.name("chosen"):
                function = transform.IncludeOp([any_op], _trial(symbol), suppress(), [entry.bodyTarget]).results[0]
            transform.AnnotateOp(function, SEQUENCE_CHOSEN)
            found.append(function)
        for symbol, handle in zip(symbols, found, strict=True):
            each = transform.ForeachOp([], [handle])
            with ir.InsertionPoint(each.body):
                transform.IncludeOp([], symbol, propagate(), [each.bodyTargets[0]])
                transform.YieldOp()
        transform.YieldOp()
