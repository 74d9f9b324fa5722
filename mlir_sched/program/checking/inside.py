"""Programs whose results say nothing are verified inside: results of their dispatches are compared.

Results that are the same whatever the inputs cannot tell wrong numbers from right ones. Both the untuned program and
the one to judge are compiled once more, so that they return results of their dispatches (``tasks/shown.py``), and are
checked as any two programs: on the same inputs, with the tolerances of whole programs.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from mlir_sched.compiler.flags import library_flags
from mlir_sched.compiler.reasons import reason
from mlir_sched.compiler.worker_process import run_isolated
from mlir_sched.errors import EnvironmentFailureError, Failure, MlirSchedError
from mlir_sched.outcome import Verdict
from mlir_sched.payload import Dispatch, TensorSpec
from mlir_sched.processes.memory import machine_memory_bytes
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.runner import BaselineError, Runner, RunResult, UnverifiableError
from mlir_sched.runner.checks.check import Checks
from mlir_sched.runner.checks.rounding import model_tolerance
from mlir_sched.runner.program import Program
from mlir_sched.tasks import TASK_FLAGS
from mlir_sched.tasks.model import EXTRACTION_LIMITS
from mlir_sched.tasks.shown import Inside, Recipe, ShownFunction, ShownProgram
from mlir_sched.tuned_folder.names import LIBRARY

MOST_BYTES = min(2**28, machine_memory_bytes() // 64)
"""Most bytes of results that a function shows. The runner holds about ten times as many: the results of two programs in
two checks, references, and copies while it compares. A convolutional network on one image makes less than 100 MB."""
WIDE = ("i64", "i32", "i16")
"""Integers that are compared for equality, however they came about."""

_JOB = "mlir_sched.tasks.worker.showing:shown_program"
_OUTPUT = re.compile(r"\boutput (\d+)\b")


@dataclass(frozen=True)
class FunctionInside:
    """A function whose results say nothing.

    Attributes:
        program: The function, without its code.
        checks: Returns its checks when it has the given outputs.
        hidden: Element types whose tensors are not compared.
    """

    path: str
    inside: Inside
    program: Program
    checks: Callable[[tuple[TensorSpec, ...]], Checks]
    hidden: tuple[str, ...]

    def shown(self, recipe: Recipe) -> ShownProgram:
        """Return the program that a recipe makes, with the results that it shows."""
        return _shown(self.path, recipe, self.inside.functions, self.hidden)

    def of(self, shown: ShownProgram, program: Program) -> Program:
        """Return a program that shows results, called as another one that does not."""
        return replace(program, vmfb=shown.vmfb, outputs=(*program.outputs, *self.results(shown).specs))

    def results(self, shown: ShownProgram) -> ShownFunction:
        """Return what the function shows."""
        return shown.functions[self.program.entry]


def hidden_types(dispatches: Sequence[Dispatch]) -> tuple[str, ...]:
    """Return the element types of tensors that are not compared inside.

    Where integers are rounded from floating point, two right programs may differ by one in some bytes, and then by any
    number in wider integers that are computed from these.
    """
    return WIDE if model_tolerance("i8", dispatches) else ()


def why_not_inside(runner: Runner, function: FunctionInside) -> str:
    """Return why a function cannot be verified inside; empty when it can.

    Raises:
        EnvironmentFailureError: The machine fails.
    """
    try:
        untuned = function.shown(function.inside.untuned)
        program = function.of(untuned, function.program)
        (failure,) = runner.check(program, [program], function.checks(program.outputs))
    except EnvironmentFailureError:
        raise
    except UnverifiableError:
        return "no result of its dispatches tells more"
    except BaselineError as error:
        return f"it fails where it shows results of its dispatches ({reason(str(error))})"
    except MlirSchedError as error:
        return f"it does not compile with results of dispatches among its own: {reason(str(error))}"
    return "" if failure is None else f"it does not repeat its results ({named(failure.message, function, untuned)})"


def verified_inside(
    runner: Runner,
    function: FunctionInside,
    results: Sequence[RunResult],
    programs: Sequence[Program],
    recipes: Sequence[Recipe | None],
) -> tuple[RunResult, ...]:
    """Return the results of programs whose own outputs say nothing, with the verdict of a comparison inside.

    A program is right where all results that are compared agree, one of them depends on the inputs, and every dispatch
    that has a script is behind one of them. It is not checked where its dispatches are not those of the untuned
    program.

    Args:
        results: What became of the programs; those that fail stay as they are.
        programs: The function in each program.
        recipes: How each program was compiled; None where that is not known.

    Raises:
        EnvironmentFailureError: The machine fails.
    """
    judged = zip(results, programs, recipes, strict=True)
    return tuple(
        result if result.failure is not None else _verified(runner, function, result, program, recipe)
        for result, program, recipe in judged
    )


def _verified(
    runner: Runner, function: FunctionInside, result: RunResult, program: Program, recipe: Recipe | None
) -> RunResult:
    try:
        if recipe is None:
            return replace(result, unchecked=OTHER_DISPATCHES)
        untuned, own = function.shown(_with_constants_of(recipe, function.inside.untuned)), function.shown(recipe)
        if why := _why_not_comparable(function, untuned, own, recipe):
            return replace(result, unchecked=why)
        reference = function.of(untuned, function.program)
        (failure,) = runner.check(reference, [function.of(own, program)], function.checks(reference.outputs))
    except EnvironmentFailureError:
        raise
    except BaselineError as error:
        return replace(result, unchecked=named(str(error), function, untuned))
    except MlirSchedError as error:
        return replace(result, unchecked=reason(str(error)))
    if failure is not None:
        message = f"inside: {named(failure.message, function, own)}"
        return RunResult(None, Failure(failure.kind, message, failure.origin))
    makers = tuple(shown.maker for shown in function.results(own).results)
    return replace(result, verdict=Verdict.RIGHT, inside=makers)


OTHER_DISPATCHES = "its results say nothing, and its dispatches are not those of the untuned program"
"""Why a program cannot be compared inside."""


def _why_not_comparable(function: FunctionInside, untuned: ShownProgram, own: ShownProgram, recipe: Recipe) -> str:
    """Return why a program cannot be compared with the untuned one inside; empty when it can."""
    shown = function.results(own)
    if own.dispatches != untuned.dispatches or shown != function.results(untuned):
        return OTHER_DISPATCHES
    if own.applied != frozenset(recipe.applied):
        return "its results say nothing, and its scripts apply otherwise where it shows results of its dispatches"
    hidden = sorted(dispatch.name for dispatch in recipe.applied if dispatch.name not in shown.behind)
    if hidden:
        return f"its results say nothing, and no result that can be compared depends on {_listed(hidden)}"
    return ""


def named(text: str, function: FunctionInside, shown: ShownProgram) -> str:
    """Return a text in which results of dispatches have the names of these and not numbers of outputs."""
    own, results = len(function.program.outputs), function.results(shown).results

    def name(found: re.Match[str]) -> str:
        position = int(found[1]) - own
        return f"the result of @{results[position].maker}" if position >= 0 else found[0]

    return _OUTPUT.sub(name, text)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"@{name}" for name in names)


def _with_constants_of(recipe: Recipe, untuned: Recipe) -> Recipe:
    """Return the untuned program's recipe with small constants where another program has them.

    They are part of dispatches or passed to them (:data:`~mlir_sched.tasks.TASK_FLAGS`).
    """
    own = tuple(flag for flag in untuned.flags if flag not in TASK_FLAGS)
    return replace(untuned, flags=(*own, *(flag for flag in TASK_FLAGS if flag in recipe.flags)))


@lru_cache(maxsize=4)
def _shown(path: str, recipe: Recipe, functions: tuple[str, ...], hidden: tuple[str, ...]) -> ShownProgram:
    with temporary_folder() as folder:
        flags = recipe.flags
        if recipe.library:
            library = Path(folder) / LIBRARY
            library.write_text(recipe.library)
            flags = (*flags, *library_flags(library))
        shown: ShownProgram = run_isolated(flags, _JOB, path, functions, MOST_BYTES, hidden, limits=EXTRACTION_LIMITS)
        return shown
