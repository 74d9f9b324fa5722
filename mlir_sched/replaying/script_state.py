"""The state of a library's script: as its decisions produce it, or edited by a person."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from mlir_sched.attributes import SEQUENCE
from mlir_sched.errors import IllegalTraceError, ScriptError
from mlir_sched.sampling import Value
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.text import changed_decisions
from mlir_sched.trace import Trace
from mlir_sched.transform_scripts.script.reading import sequence_text


class ScriptState(StrEnum):
    """How a script relates to its decisions."""

    AS_TUNED = "as tuned"
    """The script is what its decisions produce, and no decision is known to differ from the emitted ones."""
    EDITED = "decisions edited"
    """Decisions were changed by hand to other legal ones; the script is what they produce, or is generated anew."""
    HAND_WRITTEN = "edited by hand"
    """Something other than decisions was changed: the script is taken as it stands and only verified."""
    REFUSED = "refused"
    """A decision was changed to an illegal one."""
    UNKNOWN = "not in the model"
    """The model has no dispatch to check the script against."""


@dataclass(frozen=True)
class Judgement:
    """The state of a script, and the script to use.

    Attributes:
        state: How it relates to its decisions.
        note: What was changed, or why it is refused; for people.
        script: The stand-alone script to use in its place; empty when the script is used as it is.
    """

    state: ScriptState
    note: str = ""
    script: str = ""


def judge(
    library: str,
    symbol: str,
    found: Trace | ScriptError | IllegalTraceError,
    space: DesignSpace | None,
    emitted: Mapping[str, Value] | None,
) -> Judgement:
    """Return the state of the script of one sequence of a library.

    Args:
        found: Its trace, or the error in its decisions.
        space: The design space of its dispatch; None when the model has no such dispatch.
        emitted: The decisions that it was emitted with; None when they are not known.
    """
    if space is None:
        return Judgement(ScriptState.UNKNOWN, "the model has no dispatch of this name or code")
    if isinstance(found, IllegalTraceError):
        return Judgement(ScriptState.REFUSED, str(found))
    if isinstance(found, ScriptError):
        return Judgement(ScriptState.HAND_WRITTEN, str(found))
    try:
        script = space.script(found, symbol)
    except IllegalTraceError as error:
        return Judgement(ScriptState.REFUSED, str(error))
    changed = changed_decisions(found.values, emitted)
    if _text(library, symbol) == _text(script):
        return Judgement(ScriptState.EDITED if changed else ScriptState.AS_TUNED, changed)
    if changed and emitted is not None and _is_edit_of(library, symbol, found, space, emitted):
        return Judgement(ScriptState.EDITED, f"{changed}; what follows from it is generated anew", script)
    return Judgement(ScriptState.HAND_WRITTEN, "more than its decisions was changed; it is verified as it stands")


def _is_edit_of(library: str, symbol: str, found: Trace, space: DesignSpace, emitted: Mapping[str, Value]) -> bool:
    """Say whether the script is the emitted one except for its decisions."""
    try:
        original = found
        for name, value in emitted.items():
            original = _with(original, name, value)
        return _text(library, symbol, emitted) == _text(space.script(original, symbol))
    except (IllegalTraceError, ScriptError, KeyError):
        return False


def _with(trace: Trace, name: str, value: Value) -> Trace:
    return trace if trace.values[name] == value else trace.with_value(name, value)


def _text(text: str, symbol: str = SEQUENCE, values: Mapping[str, Value] | None = None) -> str:
    return sequence_text(text, symbol, values=values, distributions=False)
