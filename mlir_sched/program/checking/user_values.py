"""The values that a user gives for a program: fitted to its functions, and compared with the untuned code's results."""

from collections.abc import Sequence
from dataclasses import replace

from mlir_sched.errors import FailureClass, UserError
from mlir_sched.program.whole_program import CompiledModel, checks_of, program_of
from mlir_sched.runner import BaselineError, Runner, UnverifiableError
from mlir_sched.tasks import EntryPoint, Model
from mlir_sched.tensors.given_values import fitted
from mlir_sched.tensors.values import FunctionValues


def with_values(model: Model, values: Sequence[FunctionValues]) -> Model:
    """Return a model with the values that a user gives for its functions.

    Raises:
        UserError: The program has no such function, number, shape or type of the values differ from its tensors, or a
            function with state has a reference.
    """
    return replace(model, values=tuple(_fitted(model, each) for each in values))


def against_reference(runner: Runner, model: Model, compiled: CompiledModel) -> Model:
    """Return a model that says in which functions the untuned code is wrong: its results are not what the user gives.

    Args:
        compiled: The model as it is compiled untuned.

    Raises:
        UserError: A function fails.
    """
    found = {entry.name: _difference(runner, model, entry, compiled) for entry in model.entries}
    return replace(model, untuned_wrong={name: text for name, text in found.items() if text})


def _difference(runner: Runner, model: Model, entry: EntryPoint, compiled: CompiledModel) -> str:
    """Return how the results of a function differ from what the user gives; empty where they do not."""
    values = model.given(entry.name)
    if values is None or not values.reference:
        return ""
    program = program_of(model, entry, compiled)
    try:
        (failure,) = runner.check(program, [program], checks_of(model, entry))
    except UnverifiableError:
        return ""
    except BaselineError as error:
        raise UserError(f"{model.path}: the untuned @{entry.name} cannot be checked: {error}") from error
    return "" if failure is None or failure.kind != FailureClass.WRONG_RESULT else failure.message


def _fitted(model: Model, values: FunctionValues) -> FunctionValues:
    entry = _entry(model, values.function)
    if values.reference and entry.uses_state:
        raise UserError(
            f"{model.path}: a reference is given for @{entry.name}, whose results depend on the calls before (state: "
            f"{', '.join(f'@{name}' for name in sorted({*entry.reads, *entry.writes}))}); leave out its --reference"
        )
    reference = values.reference and fitted(values.reference, entry.outputs, f"output of @{entry.name}")
    return FunctionValues(entry.name, fitted(values.inputs, entry.inputs, f"input of @{entry.name}"), reference)


def _entry(model: Model, name: str) -> EntryPoint:
    """Return the function that values are meant for; without a name, it is the only one."""
    found = [entry for entry in model.entries if name in ("", entry.name)]
    if len(found) == 1:
        return found[0]
    if name in model.not_run:
        raise UserError(f"{model.path}: values are given for @{name}, which is not run: {model.not_run[name]}")
    names = ", ".join(f"@{entry.name}" for entry in model.entries)
    what = f"has no function @{name}" if name else "has several functions; name one, as in --input FUNCTION:@FILE.npy"
    raise UserError(f"{model.path}: the program {what}; its functions are {names}")


def untuned_wrong_notes(model: Model) -> list[str]:
    """Return a sentence for every function whose untuned code makes other results than the user gives."""
    several = len(model.entries) > 1
    return [
        f"the untuned code is wrong: {f'@{name}: ' if several else ''}{text}; the given reference judges programs"
        for name, text in model.untuned_wrong.items()
    ]
