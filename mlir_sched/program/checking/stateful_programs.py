"""Programs with state: what is called around the function that is checked, so that its results are those of a user."""

from dataclasses import replace

from mlir_sched.errors import UserError
from mlir_sched.runner.checks.check import Checks
from mlir_sched.runner.program import ProgramState, StateFunction
from mlir_sched.targets.target import Target
from mlir_sched.tasks import EntryPoint, Model


def state_of(model: Model, entry: EntryPoint) -> ProgramState | None:
    """Return the functions that share state with a function; None for a function without state."""
    if not entry.uses_state:
        return None
    sharing = _sharing(model, entry)
    functions = (StateFunction(f.name, f.inputs, f.outputs, f.integer_ranges) for f in sharing)
    return ProgramState(tuple(functions), tuple(f.name for f in sharing) if entry.writes else ())


def in_two_orders(checks: Checks, model: Model, entry: EntryPoint) -> Checks:
    """Return the checks of a function with state: each after two sequences of calls, both from a fresh context.

    The other functions that change the state are called twice each, in their order and in the opposite one. In the
    second sequence a function that changes the state itself follows.
    """
    if not entry.uses_state:
        return checks
    others = [f.name for f in _sharing(model, entry) if f.writes and f.name != entry.name]
    first = [name for name in others for _ in range(2)]
    second = [*reversed(first), *([entry.name] if entry.writes else [])]
    return tuple(replace(check, before=tuple(before)) for before in (first, second) for check in checks)


def require_resettable(model: Model, target: Target) -> None:
    """Refuse a program that changes its state in every function that is run, on a device where no state is reset.

    Raises:
        UserError: There is such a function.
    """
    for entry in model.entries:
        if entry.writes and not target.driver.on_host:
            names = ", ".join(f"@{name}" for name in entry.writes)
            raise UserError(
                f"{model.path}: nothing is tuned, as @{entry.name} changes the program's state ({names}), which "
                "is reset between measurements on llvm-cpu only; let the function take its state and return it"
            )


def _sharing(model: Model, entry: EntryPoint) -> list[EntryPoint]:
    """Return the functions that use a part of the state that a function uses, the function included."""
    own = {*entry.reads, *entry.writes}
    return [other for other in model.stateful if own & {*other.reads, *other.writes}]
