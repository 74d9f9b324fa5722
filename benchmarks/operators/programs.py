"""IREE's programs for an operator: every untuned variant, and what mlir-sched makes of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.operators.table import Operator, flops_of
from benchmarks.operators.tuning import Clock, Tuning, kept_tuning
from mlir_sched import TuneOptions, tune
from mlir_sched.compiler import ModelCompileError, compile_model
from mlir_sched.errors import UserError
from mlir_sched.payload import TensorSpec
from mlir_sched.targets import target_kind
from mlir_sched.targets.target import LOCAL, LOCAL_SYNC, Target, iree_device
from mlir_sched.tasks import EntryPoint, extract

TUNED = "mlir-sched"
EMPTY_CALL = """
func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
  %y = arith.addf %x, %x : tensor<1xf32>
  return %y : tensor<1xf32>
}
"""


@dataclass(frozen=True)
class Compiled:
    """A program that the IREE peer can load.

    Attributes:
        label: Its column: ``IREE <variant>`` or ``mlir-sched``.
        detail: The file it was made from, when the operator has several.
        vmfb: Compiled program.
        entry: What is called.
        devices: IREE's devices that it is timed on.
    """

    label: str
    detail: str
    vmfb: Path
    entry: EntryPoint
    devices: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "label": self.label,
            "detail": self.detail,
            "vmfb": str(self.vmfb),
            "entry": self.entry.name,
            "inputs": [[spec.shape, spec.element_type] for spec in self.entry.inputs],
            "outputs": [[spec.shape, spec.element_type] for spec in self.entry.outputs],
        }


@dataclass(frozen=True)
class Built:
    """All programs of an operator; the first is the reference of the numbers.

    Attributes:
        programs: What can be run.
        flops: Operations that have to be done.
        moved_bytes: Bytes that have to be moved: inputs and outputs, once.
        tuning: What mlir-sched took; None when nothing was tuned.
        notes: What could not be built, one sentence each.
    """

    programs: tuple[Compiled, ...]
    flops: int
    moved_bytes: int
    tuning: Tuning | None
    notes: tuple[str, ...]

    @property
    def entry(self) -> EntryPoint:
        """What every program takes and makes."""
        return self.programs[0].entry


def build(operator: Operator, target: Target, folder: Path, *, trials: int, seed: int) -> Built:
    """Compile an operator's files under every variant, and tune the first one with so many trials (0: not at all).

    Raises:
        UserError: A file is no program that IREE compiles.
    """
    programs: list[Compiled] = []
    notes: list[str] = []
    took: list[Tuning] = []
    counted = 0
    for path in operator.files:
        model = extract(path, target)
        counted = counted or flops_of(model)
        detail = path.stem if len(operator.files) > 1 else ""
        own = trials if path == operator.files[0] else 0
        for label, make in _makers(path, target, folder / f"tuned-{path.stem}", own, seed):
            output = folder / f"{len(programs)}.vmfb"
            try:
                tuning = make(output)
            except (UserError, ModelCompileError) as error:
                notes.append(f"{label} {detail}: {str(error).splitlines()[0]}")
                continue
            devices = _devices(target.cores)
            if tuning is not None:
                devices = (_device_of(folder / f"tuned-{path.stem}", default=devices[0]),)
            programs.append(Compiled(label, detail, output, model.entries[0], devices))
            took += [] if tuning is None else [tuning]
    if not programs:
        raise UserError(f"{operator.name}: no program could be compiled: {'; '.join(notes)}")
    specs = (*programs[0].entry.inputs, *programs[0].entry.outputs)
    tuning = Tuning(sum(t.trials for t in took), sum(t.seconds for t in took)) if took else None
    flops = counted if operator.flops is None else operator.flops
    return Built(tuple(programs), flops, sum(spec.bytes for spec in specs), tuning, tuple(notes))


def build_empty(target: Target, folder: Path) -> Compiled:
    """Return the smallest program: one element plus one element."""
    source, output = folder / "empty.mlir", folder / "empty.vmfb"
    source.write_text(EMPTY_CALL)
    compile_model(source, target.flags, None, output)
    one = TensorSpec((1,), "f32")
    return Compiled("", "", output, EntryPoint("main", (one,), (one,)), _devices(target.cores))


def _devices(threads: int) -> tuple[str, ...]:
    """Return the devices that an application with so many threads may choose."""
    return tuple(dict.fromkeys((iree_device(LOCAL, threads), LOCAL_SYNC)))


def _device_of(tuned: Path, *, default: str) -> str:
    """Return the device that a tuned folder says its program is for."""
    return str(json.loads((tuned / "summary.json").read_text())["program"].get("device", default))


Maker = Callable[[Path], Tuning | None]
"""Writes a compiled program into a file and returns what tuning it took."""


def _makers(path: Path, target: Target, tuned: Path, trials: int, seed: int) -> list[tuple[str, Maker]]:
    """Return how the program of every column is made, by label."""
    makers: list[tuple[str, Maker]] = [
        (f"IREE {name}", partial(_compiled, path, (*target.flags, *flags)))
        for name, flags in target_kind(target.name).variants.items()
    ]
    if trials:
        options = TuneOptions(trials=trials, threads=target.cores, seed=seed)
        makers.append((TUNED, partial(_tuned, path, tuned, options)))
    return makers


def _compiled(path: Path, flags: tuple[str, ...], output: Path) -> None:
    compile_model(path, flags, None, output)


def _tuned(path: Path, folder: Path, options: TuneOptions, output: Path) -> Tuning:
    """Tune a program unless the folder has it already, and compile it through what was emitted, as a user does."""
    took = kept_tuning(folder)
    if took is None:
        with Clock(folder.with_name(f"{folder.name}-seconds")) as clock:
            result = tune(path, folder, options=options)
        took = Tuning(result.trials, clock.seconds)
        took.keep(folder)
    compile_model(path, (f"@{folder / 'flags.txt'}",), None, output)
    return took
