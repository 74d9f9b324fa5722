"""Finds the scripts of a library that are at fault, by the dispatches they reach or by the compiler's diagnostics."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlir_sched.compiler import TunedDispatch
from mlir_sched.compiler.reasons import reason
from mlir_sched.library.library import TunedSequence

_SEQUENCE = re.compile(r"\s*transform\.named_sequence @(?:match_|try_)?(\w+)\(")


@dataclass(frozen=True)
class Fault:
    """What is wrong with a script of a library.

    Attributes:
        reason: What is wrong, for people.
        elsewhere: Whether the script only has to be restricted to its own dispatch, by name.
    """

    reason: str
    elsewhere: bool = False


def faults_in(
    sequences: Mapping[str, TunedSequence], dispatches: Sequence[TunedDispatch], names: Collection[str]
) -> dict[str, Fault]:
    """Return what is wrong with the scripts of a program, by task key; empty when each is where it was measured.

    A dispatch that is not in ``names`` is one that IREE keeps apart although its code equals that of a task's dispatch.

    Args:
        sequences: The scripts of the library, by task key.
        dispatches: The dispatches of the program that have a script.
        names: Every dispatch of the program that is a task.
    """
    keys = {sequence.symbol: key for key, sequence in sequences.items()}
    holders = {dispatch.name: dispatch for dispatch in dispatches}
    faults: dict[str, Fault] = {}
    for dispatch in dispatches:
        key = keys[dispatch.sequence]
        sequence = sequences[key]
        same_code = dispatch.code == sequence.code or not sequence.code
        if dispatch.name == sequence.dispatch and not same_code:
            faults[key] = Fault("its code in the program is not the code that was measured")
        elif dispatch.name != sequence.dispatch and (dispatch.name in names or not same_code):
            faults.setdefault(key, _elsewhere(sequence, dispatch.name))
    for key, sequence in sequences.items():
        holder = holders.get(sequence.dispatch)
        if holder is None:
            faults[key] = Fault(f"it was not applied to @{sequence.dispatch} in the program")
        elif holder.sequence != sequence.symbol and sequences[keys[holder.sequence]].dispatch == sequence.dispatch:
            faults[key] = Fault(f"@{sequence.dispatch} has the script of @{holder.sequence}")
    return faults


def faults_named(
    sequences: Mapping[str, TunedSequence], library: Path, diagnostics: str, names: Collection[str]
) -> dict[str, Fault]:
    """Return the scripts that the compiler's diagnostics blame, by task key; empty when they name none.

    Diagnostics name a line of the library, the dispatch that is compiled, or both.

    Args:
        diagnostics: What ``iree-compile`` printed.
    """
    why = f"the program fails with it: {reason(diagnostics)}"
    blamed = _symbols_at(library, diagnostics)
    dispatches = {name for name in names if re.search(rf"\b{re.escape(name)}\b", diagnostics)}
    by_line = {key: sequence for key, sequence in sequences.items() if sequence.symbol in blamed}
    if not by_line:
        return {key: Fault(why) for key, sequence in sequences.items() if sequence.dispatch in dispatches}
    return {
        key: _elsewhere(sequence, *sorted(dispatches))
        if dispatches and sequence.dispatch not in dispatches
        else Fault(why)
        for key, sequence in by_line.items()
    }


def _elsewhere(sequence: TunedSequence, *names: str) -> Fault:
    """Return the fault of a script that reached a dispatch it was not measured on."""
    why = f"it is also applied to @{', @'.join(names)}, which it was not measured on"
    return Fault(why, elsewhere=not sequence.only)


def _symbols_at(library: Path, diagnostics: str) -> set[str]:
    """Return the sequences of a library whose lines the errors name, without the prefixes of matchers."""
    lines = library.read_text().splitlines() if library.is_file() else []
    found = set()
    for number in re.findall(rf"{re.escape(str(library))}:(\d+):\d+: error:", diagnostics):
        above = (_SEQUENCE.match(line) for line in reversed(lines[: int(number)]))
        found |= {match[1] for match in [next(filter(None, above), None)] if match}
    return found
