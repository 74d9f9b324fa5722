"""The claim of a tuning run on its output folder, from what the user gave to the run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from mlir_sched.database.engine import is_file, parse_url
from mlir_sched.targets.devices.description_file import FILE
from mlir_sched.tensors.parameters import ParameterFile
from mlir_sched.transform_scripts.module import TransformModule
from mlir_sched.tuned_folder.claim import Claim
from mlir_sched.tuned_folder.manifest import Source, model_digest
from mlir_sched.tuning.options import TuneOptions


def claim_of(
    model: Path,
    parameters: Sequence[ParameterFile],
    options: TuneOptions,
    target: str,
    *,
    store: str | Path | None = None,
    modules: Sequence[TransformModule] = (),
) -> Claim:
    """Return what a run claims of its output folder.

    Args:
        model: The model's file.
        parameters: Files with its weights.
        options: The run's options.
        target: Name of the target of the result.
        store: Record store that the user names.
        modules: Further transform modules.
    """
    inputs = (model, *(Path(file.path) for file in parameters), *_others(options.target, store, modules))
    return Claim(Source(model_digest(model, parameters), model.name, target), inputs, options.replace)


def _others(target: str, store: str | Path | None, modules: Sequence[TransformModule]) -> Iterator[Path]:
    """Yield the file that describes the target's device, the store's file and the files of the modules."""
    device = target.partition(":")[2]
    if device.endswith(FILE):
        yield Path(device)
    if store is not None and is_file(url := parse_url(store)):
        yield Path(str(url.database))
    for module in modules:
        if file := getattr(sys.modules[type(module).__module__], "__file__", None):
            yield Path(file)
