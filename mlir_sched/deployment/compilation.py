"""Compiles a model with a tuned folder, wherever the folder lies, and says which of its scripts the model uses.

``iree-compile @flags.txt`` needs the library's absolute path, and succeeds in silence when no script applies. Here the
library is the one in the folder, and what applies is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mlir_sched.compiler import ModelCompileError, compiling, tuned_dispatches
from mlir_sched.errors import UserError
from mlir_sched.library.library import provenance_of, rewrite_of
from mlir_sched.tuned_folder.folder import read_tuned_folder
from mlir_sched.tuned_folder.installation import replace_file


@dataclass(frozen=True)
class TunedCompilation:
    """A model that was compiled with a tuned folder.

    Attributes:
        output: The compiled program; None when it was not written because a script is not used.
        applied: By the symbol of a script, the dispatches of the model that use the script.
        unused: By the symbol of every other script of the folder, the dispatch that the script was tuned for.
        device: The IREE device that the program was tuned to run on; empty when the folder does not say.
        rewrite: Name of the folder's rewrite of the whole program; empty when it has none.
    """

    output: str | None
    applied: Mapping[str, tuple[str, ...]]
    unused: Mapping[str, str]
    device: str
    rewrite: str

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON data."""
        return asdict(self)


def compile_tuned(
    model: str | Path, tuned: str | Path, output: str | Path, *, flags: Sequence[str] = (), strict: bool = False
) -> TunedCompilation:
    """Compile a model with the flags and scripts of a tuned folder.

    The model may differ from the one that was tuned: dispatches that both have use their scripts, and scripts for other
    dispatches are listed as unused. A rewrite of the whole program needs the program that was tuned. The numbers that
    the program computes are not checked here; ``replay`` does that.

    Args:
        model: A program that ``iree-compile`` reads.
        tuned: A folder that ``tune`` wrote; it may have been moved.
        output: The ``.vmfb`` file to write; a file that is there is replaced at the end.
        flags: Further flags of ``iree-compile``; they come last.
        strict: Write nothing unless every script of the folder is used.

    Raises:
        UserError: The folder cannot be used, its rewrite does not fit the model, a flag is none, or the output cannot
            be written.
        ModelCompileError: The compiler failed, or reported an error.
        ScriptError: The library is not MLIR.
    """
    for flag in flags:
        if not flag.startswith("-"):
            raise UserError(f"{flag}: not a flag of iree-compile; flags begin with -")
    folder = read_tuned_folder(Path(tuned))
    library = folder.library_to_use()
    everything = (*folder.flags, *flags)
    scripts = provenance_of(folder.library) if library else {}
    rewrite = rewrite_of(folder.library)
    applied: dict[str, list[str]] = {}
    try:
        with compiling(model, everything, library) as compiled:
            for dispatch in tuned_dispatches(model, everything, library) if library else ():
                applied.setdefault(dispatch.sequence, []).append(dispatch.name)
            unused = {symbol: origin.get("dispatch", "") for symbol, origin in scripts.items() if symbol not in applied}
            write = not (strict and unused)
            if write:
                _write(Path(output), compiled())
    except ModelCompileError as error:
        if rewrite and f"{library}:" in error.diagnostics:
            raise UserError(
                f"{folder.path}: its rewrite {rewrite} was made for another program than {model}; tune this one, with "
                "the same --store, so that dispatches that both have are not measured again"
            ) from error
        raise
    device = str(folder.summary.get("program", {}).get("device") or "")
    used = {symbol: tuple(names) for symbol, names in applied.items()}
    return TunedCompilation(str(output) if write else None, used, unused, device, rewrite)


def _write(output: Path, program: bytes) -> None:
    try:
        replace_file(output, program)
    except OSError as error:
        raise UserError(f"{output}: cannot be written: {(error.strerror or str(error)).lower()}") from error
