"""What loading a program takes beside the untuned program, each in a process of its own."""

from dataclasses import replace

from mlir_sched.errors import EnvironmentFailureError
from mlir_sched.outcome import LoadCost
from mlir_sched.program.whole_program import CompiledModel, calls_of
from mlir_sched.runner import Runner, RunnerOptions
from mlir_sched.tasks import Model
from mlir_sched.tuned_folder.result import Loading


def measure_loading(
    options: RunnerOptions, model: Model, untuned: CompiledModel, tuned: CompiledModel
) -> Loading | None:
    """Return what loading two programs of a model takes; None off the CPU, and where a process is lost meanwhile.

    Args:
        options: How programs are run.
        model: The model.
        untuned: The model without scripts.
        tuned: The program to compare with it; a program that is the same is loaded once.
    """
    if not options.driver.on_host:
        return None
    try:
        before = load_cost(options, model, untuned)
        is_same = (tuned.vmfb, tuned.local_sync) == (untuned.vmfb, untuned.local_sync)
        return Loading(before, before if is_same else load_cost(options, model, tuned))
    except EnvironmentFailureError:
        return None


def load_cost(options: RunnerOptions, model: Model, compiled: CompiledModel) -> LoadCost:
    """Return what loading a program of a model on the CPU takes; errors as :meth:`Runner.load_cost`."""
    calls = calls_of(model)
    threads = 1 if compiled.local_sync else options.threads
    with Runner(replace(options, threads=threads)) as runner:
        return runner.load_cost(calls[0][0].with_code(compiled.vmfb), calls)
