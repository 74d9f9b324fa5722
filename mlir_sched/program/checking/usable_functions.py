"""Which functions of a program are tuned: those whose untuned code runs, repeats its results, and can be verified.

The untuned code of every function is asked once, before any search. Functions whose results are the same whatever the
inputs are verified inside (``inside.py``).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mlir_sched.compiler.reasons import reason
from mlir_sched.errors import UserError
from mlir_sched.program.checking.inside import why_not_inside
from mlir_sched.program.whole_program import CompiledModel, checks_of, function_inside, program_of, with_cause
from mlir_sched.runner import BaselineError, Runner, UnverifiableError
from mlir_sched.tasks import EntryPoint, Model
from mlir_sched.tasks.partly_written import why_unwritten
from mlir_sched.tasks.shown import Inside

ADVICE = "let it return what depends on its inputs, or give inputs with --input"
STATE = "results of dispatches are not compared where calls depend on those before"


@dataclass(frozen=True)
class FunctionFinding:
    """What the untuned code of a function has shown; a text is empty where there is nothing to say.

    Attributes:
        varying: How its results differ from its own, when it runs again or on other threads.
        silent: Why its results cannot tell wrong numbers from right ones.
    """

    failing: str = ""
    varying: str = ""
    silent: str = ""

    @property
    def why_no_reference(self) -> str:
        """Why the function cannot serve as a reference; empty when it can, or may inside."""
        return self.failing or self.varying


def with_usable_functions(runner: Runner, model: Model, compiled: CompiledModel) -> Model:
    """Return a model without the functions that cannot be tuned, which also says what is verified inside.

    Args:
        compiled: The model as it is compiled untuned.

    Raises:
        UserError: No function remains.
    """
    found = {entry.name: _finding(runner, model, entry, compiled) for entry in model.entries}
    failing = {name: with_cause(each.why_no_reference, model) for name, each in found.items() if each.why_no_reference}
    if len(failing) == len(found):
        raise _refusal(model, found)
    model = _without(model, failing)
    silent = {name: each.silent for name, each in found.items() if each.silent}
    return _verified_inside(runner, model, silent, compiled)


def _finding(runner: Runner, model: Model, entry: EntryPoint, compiled: CompiledModel) -> FunctionFinding:
    own = replace(model, values=tuple(replace(given, reference=()) for given in model.values))
    try:
        failure = runner.repeat(program_of(own, entry, compiled), checks_of(own, entry))
    except UnverifiableError as error:
        return FunctionFinding(silent=str(error))
    except BaselineError as error:
        return FunctionFinding(failing=reason(str(error)))
    if failure is None:
        return FunctionFinding()
    return FunctionFinding(varying=f"the untuned code of @{entry.name} does not repeat its results ({failure})")


def _refusal(model: Model, found: Mapping[str, FunctionFinding]) -> UserError:
    """Return the error of a program none of whose functions can serve as a reference."""
    name, finding = next(iter(found.items()))
    if finding.varying:
        cause = why_unwritten(model.tasks) or "look for races, or indices beyond their tables"
        return UserError(f"{model.path}: nothing is tuned, as {finding.varying}; {cause}")
    of_several = f"@{name}: " if len(found) > 1 else ""
    failing = with_cause(finding.failing, model)
    return UserError(f"{model.path}: the untuned program cannot be measured: {of_several}{failing}")


def _verified_inside(runner: Runner, model: Model, silent: Mapping[str, str], compiled: CompiledModel) -> Model:
    """Return a model whose functions that say nothing are verified inside; those that cannot be are left out.

    Raises:
        UserError: No function remains.
    """
    if compiled.recipe is None or not silent:
        return model
    judged = replace(model, inside=Inside(tuple(silent), compiled.recipe))
    entries = [entry for entry in model.entries if entry.name in silent]
    why_not = {entry.name: _why_not_inside(runner, judged, entry) for entry in entries}
    refused = {name: f"{silent[name]}, and {why}" for name, why in why_not.items() if why}
    if len(refused) == len(model.entries):
        name, why = next(iter(refused.items()))
        of_several = f"@{name}: " if len(refused) > 1 else ""
        raise UserError(f"{model.path}: nothing is tuned, as {of_several}{why}; {ADVICE}")
    kept = tuple(name for name in silent if name not in refused)
    return replace(_without(model, refused), inside=Inside(kept, compiled.recipe) if kept else None)


def _why_not_inside(runner: Runner, model: Model, entry: EntryPoint) -> str:
    """Return why a function cannot be verified inside; empty when it can."""
    return STATE if entry.uses_state else why_not_inside(runner, function_inside(model, entry))


def _without(model: Model, reasons: Mapping[str, str]) -> Model:
    """Return a model in which some functions are not run, each with the reason."""
    kept = tuple(entry for entry in model.entries if entry.name not in reasons)
    return replace(model, entries=kept, not_run={**model.not_run, **reasons})
