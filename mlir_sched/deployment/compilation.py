"""Compiles a model with a tuned folder, wherever the folder lies, and says which of its scripts the model uses.

``iree-compile @flags.txt`` needs the library's absolute path, and succeeds in silence when no script applies. Here the
library is the one in the folder, and what applies is counted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mlir_sched.compiler import ModelCompileError, Shown, TunedDispatch, compile_showing
from mlir_sched.deployment.as_measured import differences
from mlir_sched.deployment.encoded import EncodedLoading, Encoding, encoded_loading, source_of, write_output
from mlir_sched.errors import IllegalTraceError, UserError
from mlir_sched.library.library import program_decisions, rewrite_of, scripts_of
from mlir_sched.program.encoding import EncodedFile
from mlir_sched.tasks.model import require_program
from mlir_sched.text import changed_decisions
from mlir_sched.tuned_folder.folder import TunedFolder, read_tuned_folder
from mlir_sched.tuned_folder.names import FLAGS, SUMMARY


@dataclass(frozen=True)
class TunedCompilation:
    """A model that was compiled with a tuned folder.

    Attributes:
        output: The compiled program; None when it was not written because a script is not used, or because the code is
            not what was measured.
        applied: By the symbol of a script, the dispatches of the model that use the script.
        unused: By the symbol of every other script of the folder, the dispatch that the script was tuned for.
        unmeasured: By the symbol of a script, those of its dispatches whose code is not the code that was measured.
        differences: What else differs from what was measured: processor, flags, compiler; one text each.
        device: The IREE device that the program was tuned to run on; empty when the folder does not say.
        rewrite: Name of the folder's rewrite of the whole program; empty when it has none.
        encoded: The files of encoded weights, which the program reads in the place of the originals; none where it
            computes what it needs when it is loaded.
        loading: What loading it takes with encoded weights, and before; None where that is not known.
    """

    output: str | None
    applied: Mapping[str, tuple[str, ...]]
    unused: Mapping[str, str]
    unmeasured: Mapping[str, tuple[str, ...]]
    differences: tuple[str, ...]
    device: str
    rewrite: str
    encoded: tuple[EncodedFile, ...] = ()
    loading: EncodedLoading | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON data."""
        return asdict(self)


def compile_tuned(
    model: str | Path,
    tuned: str | Path,
    output: str | Path,
    *,
    flags: Sequence[str] = (),
    strict: bool = False,
    parameters: Sequence[str] = (),
    encode: Sequence[str] = (),
) -> TunedCompilation:
    """Compile a model with the flags and scripts of a tuned folder.

    The model may differ from the one that was tuned: dispatches that both have use their scripts, and scripts for other
    dispatches are listed as unused. A dispatch whose code with the script is not the code that was measured is listed,
    too: the script was edited, or flags or the model differ in a way that no matcher sees. A rewrite of the whole
    program needs the program that was tuned. The numbers that the program computes are not checked here; ``replay``
    does that.

    Args:
        output: The ``.vmfb`` file to write; a file that is there is replaced at the end.
        flags: Further flags of ``iree-compile``; they come last.
        strict: Write nothing unless every script of the folder is used, and the code is what was measured: that of the
            scripts, for the same processor, with the same flags and compiler. Where it is compiled does not matter.
        parameters: Files with the weights to encode, ``scope=file``.
        encode: Files to write, ``scope=file``, one for each scope of the compiled program: weights as its calls read
            them, computed on this machine's CPU instead of whenever the program is loaded.

    Raises:
        UserError: The model is no file, the folder cannot be used, a decision about the program was edited, its rewrite
            does not fit the model, a flag is none, weights cannot be encoded, or a file cannot be written.
        ModelCompileError: The compiler failed, or reported an error.
        ScriptError: The library is not MLIR.
    """
    for flag in flags:
        if not flag.startswith("-"):
            raise UserError(f"{flag}: not a flag of iree-compile; flags begin with -")
    model, folder = require_program(model), read_tuned_folder(Path(tuned))
    library, encoding = folder.library_to_use(), Encoding.parse(parameters, encode)
    weights = (Path(file.path) for file in encoding.parameters)
    inputs = (Path(model), folder.path / FLAGS, folder.path / SUMMARY, folder.library_file, *weights)
    for path in (output, *(file.path for file in encoding.targets)):
        _require_no_input(Path(path), inputs)
    everything = (*folder.flags, *flags)
    scripts = scripts_of(folder.library) if library else {}
    rewrite = rewrite_of(folder.library)
    _require_unedited_program(folder)
    different = differences(folder, flags, scripts)
    encoded: tuple[EncodedFile, ...] = ()
    loading: EncodedLoading | None = None
    try:
        with source_of(model, everything, library, encoding) as source:
            shown = (Shown.SCRIPTS,) if library else ()
            program = compile_showing(source.program, (*everything, *source.flags), library, shown)
            applied = _by_script(program.scripts)
            unused = {symbol: origin.get("dispatch", "") for symbol, origin in scripts.items() if symbol not in applied}
            unmeasured = _by_script([dispatch for dispatch in program.scripts if not _is_measured(dispatch, scripts)])
            write = not (strict and (unused or unmeasured or different))
            if write:
                write_output(Path(output), program.vmfb)
                encoded = source.install()
            if write and source.encoded:
                loading = encoded_loading(folder, source.encoded, program.vmfb)
    except ModelCompileError as error:
        if rewrite and f"{library}:" in error.diagnostics:
            raise UserError(
                f"{folder.path}: its rewrite {rewrite} was made for another program than {model}; tune this one, with "
                "the same --store, so that dispatches that both have are not measured again"
            ) from error
        raise
    written = str(output) if write else None
    return TunedCompilation(written, applied, unused, unmeasured, different, folder.device, rewrite, encoded, loading)


def _require_no_input(output: Path, inputs: Sequence[Path]) -> None:
    """Refuse an output that is one of the files that are read.

    Raises:
        UserError: See above.
    """
    if any(path.exists() and output.exists() and output.samefile(path) for path in inputs):
        raise UserError(f"{output} is read for this; name another file")


def _require_unedited_program(folder: TunedFolder) -> None:
    """Refuse a folder with an edited decision about the program, from which nothing follows by itself.

    Raises:
        UserError: See above.
        ScriptError: A decision is damaged.
    """
    try:
        decisions = program_decisions(folder.library) if folder.library else ()
    except IllegalTraceError as error:
        raise UserError(f"{folder.library_file}: {error}") from error
    if changed := changed_decisions({d.name: d.value for d in decisions}, folder.emitted_decisions):
        raise UserError(
            f"{folder.library_file}: a decision about the whole program was edited ({changed}), and what follows from "
            f"it was not: mlir-sched replay {folder.path} MODEL -o FOLDER generates that, and writes a folder to use"
        )


def _by_script(dispatches: Sequence[TunedDispatch]) -> dict[str, tuple[str, ...]]:
    """Return the names of dispatches by the symbol of their script."""
    symbols = dict.fromkeys(dispatch.sequence for dispatch in dispatches)
    return {symbol: tuple(d.name for d in dispatches if d.sequence == symbol) for symbol in symbols}


def _is_measured(dispatch: TunedDispatch, scripts: Mapping[str, Mapping[str, str]]) -> bool:
    """Say whether the code of a dispatch is what was measured; true where the library does not say what that was."""
    return dispatch.code == (scripts.get(dispatch.sequence, {}).get("code") or dispatch.code)
