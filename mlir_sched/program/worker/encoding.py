"""The worker's side of ``program/encoding.py``: the encoder is made, and run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import iree.runtime as rt
import numpy as np
from iree.compiler import ir

from mlir_sched.compiler.reasons import reason
from mlir_sched.compiler.worker.session import context
from mlir_sched.errors import UserError
from mlir_sched.program.encoding import EncodedFile, EncodedTensor, ParameterName, SplitProgram
from mlir_sched.program.worker.encoder import split
from mlir_sched.runner.program import Program, StateFunction
from mlir_sched.runner.worker.device import LocalDevice
from mlir_sched.targets.target import LOCAL_SYNC
from mlir_sched.tasks import EntryPoint
from mlir_sched.tasks.worker.entry_points import entries_to_run, entry_points
from mlir_sched.tensors.parameters import ParameterFile


def split_program(whole: str, program: str, encoder: str) -> SplitProgram:
    """Write a program without what depends on parameters alone, and its encoder; return what they share.

    Args:
        whole: File with the program at the flow phase.
        program, encoder: Files to write.

    Raises:
        UserError: The program runs on another device than the CPU.
    """
    with context(), ir.Location.unknown():
        texts = split(Path(whole).read_text())
    Path(program).write_text(texts[0])
    Path(encoder).write_text(texts[1])
    return texts[2]


def functions_to_run(program: str) -> tuple[EntryPoint, ...]:
    """Return the functions that are run of a file with a program at the flow phase.

    Raises:
        UserError: A function takes or returns a tensor with a dynamic dimension.
    """
    with context(), ir.Location.unknown():
        entries, _ = entries_to_run(entry_points(program, ir.Module.parse(Path(program).read_text()).operation), {})
    return entries


def write_encoded(
    vmfb: bytes, shared: SplitProgram, parameters: tuple[ParameterFile, ...], folder: str
) -> tuple[EncodedFile, ...]:
    """Run an encoder, and write the parameters of its program, a file per scope.

    Args:
        vmfb: The compiled encoder; empty where there is nothing to compute.
        shared: What encoder and program share.
        parameters: The files that the encoder reads.
        folder: Where files are written.

    Raises:
        UserError: A file lacks a parameter, is no file of parameters, or the encoder fails.
    """
    try:
        views = dict(_computed(vmfb, shared.encoded, parameters))
        return tuple(
            _write(Path(folder) / f"{number}.irpa", scope, shared, views, parameters)
            for number, scope in enumerate(shared.scopes)
        )
    except (RuntimeError, ValueError) as error:
        raise UserError(f"the weights cannot be computed: {reason(str(error))}") from None


@lru_cache(maxsize=1)
def _device() -> LocalDevice:
    """Return the device of this process, which outlives all memory of its own that is still looked at."""
    return LocalDevice(rt.VmInstance(), LOCAL_SYNC)


def _computed(
    vmfb: bytes, tensors: Sequence[EncodedTensor], parameters: tuple[ParameterFile, ...]
) -> Iterator[tuple[ParameterName, Any]]:
    """Yield the names of tensors with their memory."""
    if not tensors:
        return
    encoder = _device().load(Program(vmfb, tensors[0].function, (), (), False, parameters))
    for tensor in tensors:
        (view,) = encoder.call_other(StateFunction(tensor.function, (), (tensor.spec,)), [])
        yield tensor.name, view.map().asarray((tensor.spec.bytes,), np.dtype(np.uint8))


def _write(
    path: Path,
    scope: str,
    shared: SplitProgram,
    views: Mapping[ParameterName, Any],
    parameters: Sequence[ParameterFile],
) -> EncodedFile:
    """Write the parameters of a scope: those that are kept, and those that were computed."""
    index, kept = rt.ParameterIndex(), [name for name in shared.kept if name.scope == scope]
    known = dict(_entries(scope, parameters))
    for name in kept:
        if name.key not in known:
            raise UserError(f"no file of the scope {scope} has the parameter {name.key}")
        _copy(index, name.key, known[name.key])
    own = {name.key: view for name, view in views.items() if name.scope == scope}
    for key, view in own.items():
        index.add_buffer(key, view)
    index.create_archive_file(str(path))
    return EncodedFile(scope, str(path), len(own), len(kept), path.stat().st_size)


def _entries(scope: str, parameters: Sequence[ParameterFile]) -> Iterator[tuple[str, Any]]:
    """Yield the entries of the files of a scope by their keys."""
    for file in parameters:
        if file.scope == scope:
            index = rt.ParameterIndex()
            index.load(file.path)
            yield from index.items()


def _copy(index: Any, key: str, entry: Any) -> None:
    """Add an entry of another file to an index, without reading what is in it; notes for people are left out."""
    if entry.is_splat:
        index.add_splat(key, entry.splat_pattern, entry.length)
        return
    handle, offset = entry.file_storage
    index.add_from_file_handle(key, handle, entry.length, offset=offset)
