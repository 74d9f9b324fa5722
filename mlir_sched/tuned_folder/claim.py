"""The claim of a run on its output folder: what is written there replaces only earlier results of the same model."""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlir_sched.errors import UserError
from mlir_sched.targets.devices import FILE
from mlir_sched.tensors.parameters import ParameterFile
from mlir_sched.transform_scripts.module import TransformModule
from mlir_sched.tuned_folder.error_log import is_error_log
from mlir_sched.tuned_folder.manifest import Manifest, Source, model_digest, read_manifest
from mlir_sched.tuned_folder.names import INTERNAL_ERRORS, LOCK, MANIFEST, RESULT

WRITTEN = (*RESULT, MANIFEST, INTERNAL_ERRORS, LOCK)
"""The names that a run writes in its folder, beside the record store."""
ADVICE = "choose another folder with -o, or take this one over with --replace, which keeps its records"


@dataclass(frozen=True)
class Claim:
    """What a run wants to write into a folder.

    Attributes:
        source: What its result is made from.
        inputs: Files that the run reads, or writes under names that the user chose.
        replace: Whether files may be replaced that are no earlier result of the same model.
        advice: What the user can do where the folder is refused.
    """

    source: Source
    inputs: tuple[Path, ...] = ()
    replace: bool = False
    advice: str = ADVICE

    def require(self, folder: Path) -> None:
        """Refuse a folder in which something would be lost; nothing is written, and the folder need not exist.

        Raises:
            UserError: An input has a name that is written; or, unless the user allows that, a file with such a name is
                not ours or was edited, or the folder holds the result of another model or target.
        """
        for path in self.inputs:
            for name in WRITTEN:
                if _is_same(path, folder / name):
                    raise UserError(
                        f"{path}: the run would write its own {name} in its place; choose another folder with -o"
                    )
        if not self.replace:
            reason = _foreign(folder) or self._other(folder)
            if reason:
                raise UserError(f"{reason}; {self.advice}")

    def _other(self, folder: Path) -> str:
        """Return why a folder's result is of another source; empty where it is of this one or there is none."""
        held = read_manifest(folder)
        if held is None or held.source == self.source:
            return ""
        if held.source.target != self.source.target:
            return f"{folder} holds results for the target {held.source.target}, not {self.source.target}"
        if held.source.model == self.source.model:
            return ""
        if held.source.model_file != self.source.model_file:
            return f"{folder} holds the result of another model, {held.source.model_file}"
        return f"{folder} holds the result of {self.source.model_file} as it was before the file or its weights changed"


def claim_of(
    model: Path,
    parameters: Sequence[ParameterFile],
    target: str,
    result_target: str,
    *,
    replace: bool = False,
    store: str | Path | None = None,
    modules: Sequence[TransformModule] = (),
) -> Claim:
    """Return what a run claims of its output folder.

    Args:
        target: What to compile for, with the device or its description as the user gave it.
        result_target: What the result is for.
        store: Record store that the user names.
        modules: Further transform modules.
    """
    inputs = (model, *(Path(file.path) for file in parameters), *_further_inputs(target, store, modules))
    return Claim(Source(model_digest(model, parameters), model.name, result_target), inputs, replace)


def _further_inputs(target: str, store: str | Path | None, modules: Sequence[TransformModule]) -> Iterator[Path]:
    """Yield the file that describes the target's device, the store's file and the files of the modules."""
    device = target.partition(":")[2]
    if device.endswith(FILE):
        yield Path(device)
    if store is not None:
        from mlir_sched.database.engine import is_file, parse_url  # takes long to import; most claims name no store

        if is_file(url := parse_url(store)):
            yield Path(str(url.database))
    for module in modules:
        if file := getattr(sys.modules[type(module).__module__], "__file__", None):
            yield Path(file)


def _foreign(folder: Path) -> str:
    """Return which file of a folder has a name of ours and is not ours as it was written; empty when none is."""
    try:
        manifest = read_manifest(folder)
    except UserError as error:
        return str(error)
    for name in RESULT:
        path = folder / name
        if os.path.lexists(path) and not (manifest and manifest.knows(path)):
            return _why_foreign(path, manifest)
    log = folder / INTERNAL_ERRORS
    return f"{log} was not written by mlir-sched" if os.path.lexists(log) and not is_error_log(log) else ""


def _why_foreign(path: Path, manifest: Manifest | None) -> str:
    if manifest and path.name in manifest.files:
        return f"{path} was edited by hand"
    return f"{path} is not known to be written by mlir-sched"


def _is_same(first: Path, second: Path) -> bool:
    """Say whether two paths name the same file, or would once the file is made."""
    if first.exists() and second.exists():
        return first.samefile(second)
    return os.path.realpath(first) == os.path.realpath(second)
