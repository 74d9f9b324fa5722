"""Compiles a program with its scripts as a user does, and checks that each script is applied where it was measured.

The library and the flags are written to a scratch folder; the proven files are later installed unchanged. The
compilation shows on its way which dispatch every script was applied to, and with what code. This code has to equal the
code that was measured alone, and no other dispatch may have a script.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from mlir_sched.compiler import (
    ModelCompileError,
    Shown,
    TunedDispatch,
    compile_showing,
    compile_to_bytes,
)
from mlir_sched.compiler.reasons import reason
from mlir_sched.errors import FailureClass
from mlir_sched.library.library import TunedSequence, build_library
from mlir_sched.program.blame import Fault, faults_in, faults_named
from mlir_sched.program.program_space import ProgramSpace
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.whole_program import CompiledModel
from mlir_sched.tasks.shown import Recipe
from mlir_sched.trace import Trace
from mlir_sched.tuned_folder.installation import EmittedFiles, name_of_emission
from mlir_sched.tuned_folder.names import FLAGS, LIBRARY
from mlir_sched.tuned_folder.replaced_file import replace_file

UNNAMED = "the program does not compile with the scripts together, and the compiler does not say which is at fault"


@dataclass(frozen=True)
class Proven:
    """A program in which each script is applied where it was measured.

    Attributes:
        sequences: Its scripts by task key.
        dropped: Why the other scripts are not in it, by task key.
        files: Library and flags that the program was compiled with.
        program: The decisions about the program, as the library states them; None where libraries state none.
        applied: The dispatches that have a script, as the compiler says.
    """

    variant: BuiltVariant
    sequences: Mapping[str, TunedSequence]
    dropped: Mapping[str, str]
    files: EmittedFiles
    vmfb: bytes
    program: Trace | None = None
    applied: tuple[TunedDispatch, ...] = ()

    def compiled(self) -> CompiledModel:
        """Return the program as a compiled model."""
        if not self.sequences:
            return replace(self.variant.compiled(), vmfb=self.vmfb)
        recipe = Recipe(self.files.flags, self.files.library, self.applied)
        return CompiledModel(self.vmfb, self.variant.variant.plan.local_sync, recipe)


@dataclass(frozen=True)
class Prover:
    """Proves sets of scripts of one model.

    Attributes:
        folder: A scratch folder of its own.
        space: The decisions between variants that the program has, which libraries state; None for libraries that state
            none.
    """

    model: Path
    folder: Path
    space: ProgramSpace | None = None

    def prove(self, variant: BuiltVariant, sequences: Mapping[str, TunedSequence]) -> Proven:
        """Compile a variant with scripts, and again without the scripts found at fault, until no script is.

        A script that reaches other dispatches than its own is first restricted to its own dispatch, by name. Also a
        program without any script is compiled here: before, it was compiled without verification.

        Raises:
            ModelCompileError: The program without any script does not compile, or its rewrite is not applied.
        """
        kept, dropped = dict(sequences), dict[str, str]()
        names = {task.name for task in variant.model.tasks}
        while True:
            files = self._files(variant, kept)
            flags = self._write(files)
            try:
                program = compile_showing(self.model, flags, shown=tuple(Shown) if kept else (Shown.REWRITES,))
                _require_rewrite(variant, program.rewrites)
                faults = faults_in(kept, program.scripts, names)
                if not faults:
                    decided, scripts = self._decided(variant), program.scripts
                    return Proven(variant, kept, dropped, files, program.vmfb, decided, scripts)
            except ModelCompileError as error:
                if not kept:
                    raise
                faults = self._faults_of_failure(variant, kept, error)
            dropped |= {key: fault.reason for key, fault in faults.items() if not fault.elsewhere}
            kept = {key: _kept_apart(sequence, faults.get(key)) for key, sequence in kept.items() if key not in dropped}

    def _files(self, variant: BuiltVariant, sequences: Mapping[str, TunedSequence]) -> EmittedFiles:
        """Return the files that a program is compiled with; without scripts and rewrite there is no library."""
        flags = variant.model.flags if sequences else variant.untuned_flags
        if not sequences and variant.variant.rewrite is None:
            return EmittedFiles("", flags)
        rewrite, program = variant.variant.rewrite, self._decided(variant)
        named = partial(name_of_emission, flags=flags)
        return EmittedFiles(build_library([*sequences.values()], rewrite, program=program, emission=named), flags)

    def _decided(self, variant: BuiltVariant) -> Trace | None:
        return self.space.trace_of(variant.variant.plan) if self.space else None

    def _write(self, files: EmittedFiles) -> tuple[str, ...]:
        """Write library and flags, and return the argument ``@flags.txt``."""
        library, response = self.folder / LIBRARY, self.folder / FLAGS
        replace_file(library, files.library.encode())
        replace_file(response, files.response(library).encode())
        return (f"@{response}",)

    def _faults_of_failure(
        self, variant: BuiltVariant, sequences: Mapping[str, TunedSequence], error: ModelCompileError
    ) -> dict[str, Fault]:
        """Return the scripts to blame for a failure: those that the compiler names, or that fail alone, or all."""
        names = {task.name for task in variant.model.tasks}
        named = faults_named(sequences, self.folder / LIBRARY, error.diagnostics, names)
        if named:
            return named
        alone = {
            key: Fault(f"the program does not compile with it: {failure}")
            for key, sequence in sequences.items()
            if (failure := self._failure_alone(variant, key, sequence))
        }
        return alone or dict.fromkeys(sequences, Fault(f"{UNNAMED}: {reason(str(error))}"))

    def _failure_alone(self, variant: BuiltVariant, key: str, sequence: TunedSequence) -> str:
        try:
            compile_to_bytes(self.model, self._write(self._files(variant, {key: sequence})))
        except ModelCompileError as error:
            return reason(str(error))
        return ""


def _require_rewrite(variant: BuiltVariant, found: Collection[str]) -> None:
    """Check that a variant's rewrite is among those that were found in the program.

    Raises:
        ModelCompileError: The rewrite is not applied.
    """
    rewrite = variant.variant.rewrite
    if rewrite and rewrite.mark not in found:
        raise ModelCompileError(f"the rewrite {rewrite.name} was not applied", kind=FailureClass.NOT_APPLIED)


def _kept_apart(sequence: TunedSequence, fault: Fault | None) -> TunedSequence:
    return sequence if fault is None else replace(sequence, only=(sequence.dispatch,))
