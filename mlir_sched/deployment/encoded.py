"""What a tuned folder's flags compile: the model, or the model with its weights encoded and the files of these."""

import mmap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from mlir_sched.errors import MlirSchedError, UserError
from mlir_sched.outcome import LoadCost
from mlir_sched.program.encoding import FROM_FLOW, EncodedFile, EncodedProgram, encoded_program
from mlir_sched.program.loading import load_cost
from mlir_sched.program.whole_program import CompiledModel
from mlir_sched.runner import RunnerOptions
from mlir_sched.targets import available_cpus
from mlir_sched.targets.target import LOCAL, in_calling_thread
from mlir_sched.tensors.parameters import ParameterFile, parameter_files
from mlir_sched.tuned_folder.folder import TunedFolder
from mlir_sched.tuned_folder.replaced_file import replace_file
from mlir_sched.tuned_folder.result import Loading

_SUFFIX = ".irpa"
"""IREE tells the format of a file of parameters from the end of its name."""


@dataclass(frozen=True)
class Encoding:
    """The files of weights to read and to write, a scope or more.

    Attributes:
        parameters: The files that the model reads.
        targets: The files to write, one per scope; none where weights stay as they are.
    """

    parameters: tuple[ParameterFile, ...]
    targets: tuple[ParameterFile, ...]

    @staticmethod
    def parse(parameters: Sequence[str], targets: Sequence[str]) -> "Encoding":
        """Return the files that a user names as ``scope=file``.

        Raises:
            UserError: A file to read is missing, two files are to be written for one scope, or the end of a name is not
                that of the format; files to read are given, and none to write.
        """
        written = tuple(map(ParameterFile.parse, targets))
        for text, file in zip(targets, written, strict=True):
            if not file.path.endswith(_SUFFIX):
                raise UserError(f"--encode {text}: the file's name has to end in {_SUFFIX}")
        if len({file.scope for file in written}) < len(written):
            raise UserError("--encode: one file for each scope; a scope is named twice")
        if parameters and not written:
            raise UserError("--parameters: a program is compiled without its weights; give --encode to encode them")
        return Encoding(parameter_files(parameters), written)


@dataclass(frozen=True)
class Source:
    """A program for ``iree-compile``.

    Attributes:
        program: The program.
        flags: The flags that it needs beside those of the folder.
        encoded: The program with encoded parameters, in temporary files; None where weights stay as they are.
        targets: Where its files belong.
    """

    program: Path
    flags: tuple[str, ...] = ()
    encoded: EncodedProgram | None = None
    targets: tuple[Path, ...] = ()

    def install(self) -> tuple[EncodedFile, ...]:
        """Write the files where they belong.

        Raises:
            UserError: A file cannot be written.
        """
        files = tuple(zip(self.encoded.files if self.encoded else (), self.targets, strict=True))
        for file, target in files:
            with (
                Path(file.path).open("rb") as content,
                mmap.mmap(content.fileno(), 0, access=mmap.ACCESS_READ) as bytes_,
            ):
                write_output(target, bytes_)
        return tuple(replace(file, path=str(target)) for file, target in files)


@contextmanager
def source_of(model: Path, flags: tuple[str, ...], library: Path | None, encoding: Encoding) -> Iterator[Source]:
    """Encode the weights of a model, if files for them are wanted, and yield what to compile.

    Raises:
        ModelCompileError: The compiler failed.
        UserError: As :func:`encoded_program`; the files to write are not those of the scopes that the program reads.
    """
    if not encoding.targets:
        yield Source(model)
        return
    with encoded_program(model, flags, library, encoding.parameters) as encoded:
        targets = {target.scope: Path(target.path) for target in encoding.targets}
        scopes = {file.scope for file in encoded.files}
        if scopes != targets.keys():
            wanted = " ".join(f"--encode {scope}=FILE{_SUFFIX}" for scope in sorted(scopes))
            raise UserError(f"{model}: one file for each scope that the compiled program reads is needed: {wanted}")
        yield Source(encoded.program, (FROM_FLOW,), encoded, tuple(targets[file.scope] for file in encoded.files))


def write_output(path: Path, content: bytes | mmap.mmap) -> None:
    """Write a file that a user names whole or not at all.

    Raises:
        UserError: The file cannot be written.
    """
    try:
        replace_file(path, content)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {(error.strerror or str(error)).lower()}") from error


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
