"""Functions whose results are the same whatever the inputs: they are verified inside, or refused."""

from __future__ import annotations

from dataclasses import replace

from mlir_sched.errors import UserError
from mlir_sched.program.inside import why_not_inside
from mlir_sched.program.whole_program import CompiledModel, checks_of, function_inside, program_of
from mlir_sched.runner import BaselineError, Runner, UnverifiableError
from mlir_sched.tasks import EntryPoint, Model
from mlir_sched.tasks.shown import Inside

ADVICE = "let it return what depends on its inputs, or give inputs with --input"
STATE = "results of dispatches are not compared where calls depend on those before"


def with_inside(runner: Runner, model: Model, compiled: CompiledModel) -> Model:
    """Return a model that says which of its functions are verified inside, as their results say nothing.

    Functions that cannot be verified inside either are left out, with the reason, if others remain.

    Args:
        runner: Runs the functions.
        model: The model.
        compiled: The model as it is compiled untuned.

    Raises:
        UserError: No function remains.
    """
    found = {entry.name: _why_silent(runner, model, entry, compiled) for entry in model.entries}
    silent = {name: why for name, why in found.items() if why}
    if compiled.recipe is None or not silent:
        return model
    judged = replace(model, inside=Inside(tuple(silent), compiled.recipe))
    refused = {
        entry.name: f"{silent[entry.name]}, and {why}"
        for entry in model.entries
        if entry.name in silent and (why := _why_refused(runner, judged, entry))
    }
    kept = tuple(entry for entry in model.entries if entry.name not in refused)
    if not kept:
        name, why = next(iter(refused.items()))
        of_several = f"@{name}: " if len(refused) > 1 else ""
        raise UserError(f"{model.path}: nothing is tuned, as {of_several}{why}; {ADVICE}")
    inside = Inside(tuple(name for name in silent if name not in refused), compiled.recipe)
    return replace(
        model, entries=kept, not_run={**model.not_run, **refused}, inside=inside if inside.functions else None
    )


def _why_refused(runner: Runner, model: Model, entry: EntryPoint) -> str:
    """Return why a function cannot be verified inside; empty when it can."""
    return STATE if entry.uses_state else why_not_inside(runner, function_inside(model, entry))


def _why_silent(runner: Runner, model: Model, entry: EntryPoint, compiled: CompiledModel) -> str:
    """Return why the results of a function cannot tell wrong numbers from right ones; empty when they can."""
    try:
        runner.check(program_of(model, entry, compiled), [], checks_of(model, entry))
    except UnverifiableError as error:
        return str(error)
    except BaselineError:
        return ""
    return ""
