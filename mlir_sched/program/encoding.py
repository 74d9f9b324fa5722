"""Programs whose weights are encoded: files hold what loading would compute from parameters, as calls read it.

What depends on weights alone (folded, transposed, packed weights) is computed whenever a program is loaded, while the
originals are in memory, too. Here an encoder computes that once, and writes it to files that the program maps as it
maps any parameters. Why that is not IREE's own encoder is in ``docs/rewrites.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mlir_sched.compiler import compile_to_bytes
from mlir_sched.compiler.iree_compile import compile_model
from mlir_sched.compiler.reasons import reason
from mlir_sched.compiler.worker_process import run_isolated
from mlir_sched.errors import UserError
from mlir_sched.payload import TensorSpec
from mlir_sched.processes.limits import ChildError
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.tasks.model import EXTRACTION_LIMITS, Model
from mlir_sched.tensors.parameters import ParameterFile, require_scopes

FROM_FLOW = "--compile-from=flow"
"""The flag of ``iree-compile`` for an :class:`EncodedProgram`, beside those that the model is compiled with."""
_SPLIT = "mlir_sched.program.worker.encoding:split_program"
_WRITE = "mlir_sched.program.worker.encoding:write_encoded"
_FUNCTIONS = "mlir_sched.program.worker.encoding:functions_to_run"


@dataclass(frozen=True)
class ParameterName:
    """How a program names a parameter: by the scope of a file, and by the key in it."""

    scope: str
    key: str


@dataclass(frozen=True)
class EncodedTensor:
    """A tensor that an encoder computes.

    Attributes:
        name: The parameter that it is in the program. The scope is that of a parameter that it is computed from; the
            key has a digest of the encoder, so that a program refuses the files of another one.
        function: The function of the encoder that returns it.
    """

    name: ParameterName
    spec: TensorSpec
    function: str


@dataclass(frozen=True)
class SplitProgram:
    """A program without what an encoder does for it.

    Attributes:
        sources: The scopes that program and encoder read together, sorted.
        encoded: The tensors that are computed ahead of time.
        kept: The parameters that the program reads as they are.
    """

    sources: tuple[str, ...]
    encoded: tuple[EncodedTensor, ...]
    kept: tuple[ParameterName, ...]

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that the program reads, sorted."""
        return tuple(sorted({name.scope for name in (*self.kept, *(tensor.name for tensor in self.encoded))}))


@dataclass(frozen=True)
class EncodedFile:
    """A file of encoded parameters.

    Attributes:
        scope: The scope under which the program reads it.
        path: The file.
        encoded, kept: Numbers of tensors that were computed, and that are as they were.
        bytes: Size of the file.
    """

    scope: str
    path: str
    encoded: int
    kept: int
    bytes: int


@dataclass(frozen=True)
class EncodedProgram:
    """A program with its encoded parameters, in temporary files.

    Attributes:
        program: The program at IREE's flow phase, to compile with :data:`FROM_FLOW`.
        files: Its parameters, a file per scope.
    """

    program: Path
    files: tuple[EncodedFile, ...]

    def as_model(self) -> Model:
        """Return the program as a model without tasks, whose functions can be called.

        Raises:
            UserError: A function takes or returns a tensor with a dynamic dimension.
        """
        entries = run_isolated((), _FUNCTIONS, str(self.program), limits=EXTRACTION_LIMITS)
        files = tuple(ParameterFile(file.scope, file.path) for file in self.files)
        return Model(str(self.program), entries, (), (), parameters=files)


@contextmanager
def encoded_program(
    model: Path, flags: tuple[str, ...], library: Path | None, parameters: Sequence[ParameterFile]
) -> Iterator[EncodedProgram]:
    """Compute the weights of a program for the CPU ahead of time, on this machine; the files exist inside the context.

    Args:
        model: A program in any form that ``iree-compile`` reads.
        flags: Compiler flags.
        library: A transform library, or None.
        parameters: The files that the program reads.

    Raises:
        ModelCompileError: The compiler failed.
        UserError: The program reads no parameters; a file that it reads was not given, or lacks a parameter; it runs on
            another device than the CPU, or has code that this CPU does not run.
    """
    with temporary_folder() as name:
        folder = Path(name)
        whole, program, encoder = folder / "whole.mlir", folder / "program.mlir", folder / "encoder.mlir"
        compile_model(model, (*flags, "--compile-to=flow"), library, whole)
        split: SplitProgram = run_isolated((), _SPLIT, *map(str, (whole, program, encoder)), limits=EXTRACTION_LIMITS)
        if not split.sources:
            raise UserError(f"{model}: the program reads no parameters: its weights are computed when it is compiled")
        require_scopes(str(model), split.sources, parameters)
        vmfb = compile_to_bytes(encoder, (*flags, FROM_FLOW), library) if split.encoded else b""
        try:
            files = run_isolated((), _WRITE, vmfb, split, tuple(parameters), str(folder), limits=EXTRACTION_LIMITS)
        except ChildError as error:
            raise UserError(
                f"{model}: its weights cannot be computed on this machine: {reason(str(error))}; encode them where the "
                "program can run"
            ) from None
        yield EncodedProgram(program, files)
