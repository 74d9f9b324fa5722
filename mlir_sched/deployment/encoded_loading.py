"""What loading a program takes once its weights are encoded, beside what a tuned folder says of loading before that."""

from dataclasses import dataclass

from mlir_sched.errors import MlirSchedError
from mlir_sched.outcome import LoadCost
from mlir_sched.program.encoding import EncodedProgram
from mlir_sched.program.loading import load_cost
from mlir_sched.program.whole_program import CompiledModel
from mlir_sched.runner import RunnerOptions
from mlir_sched.targets import available_cpus
from mlir_sched.targets.target import LOCAL, in_calling_thread
from mlir_sched.tuned_folder.folder import TunedFolder
from mlir_sched.tuned_folder.result import Loading


@dataclass(frozen=True)
class EncodedLoading:
    """What loading a program takes after its weights were encoded, and before.

    Attributes:
        encoded: With encoded weights, on this machine.
        before: As the folder's run measured: of plain ``iree-compile``, and of the program that computes its weights
            when it is loaded; None where the folder does not say.
    """

    encoded: LoadCost
    before: Loading | None


def encoded_loading(folder: TunedFolder, program: EncodedProgram, vmfb: bytes) -> EncodedLoading | None:
    """Return what loading a program takes; None where it has dynamic shapes, or this machine cannot measure that.

    Args:
        folder: The folder that the program was compiled with, which says on how many threads it runs.
        program: The program with its encoded weights.
        vmfb: Its code.
    """
    try:
        options = RunnerOptions.for_device(LOCAL, threads=max(1, min(folder.threads, available_cpus())))
        cost = load_cost(options, program.as_model(), CompiledModel(vmfb, in_calling_thread(folder.device)))
    except MlirSchedError:  # the files are written by now, and nothing depends on the figures
        return None
    return EncodedLoading(cost, folder.loading)
