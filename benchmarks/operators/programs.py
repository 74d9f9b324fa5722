"""IREE's programs for an operator: one per untuned variant, and the one tuned by mlir-sched."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.operators.table import Operator, flops_of
from benchmarks.peers.tuning import Clock, Tuning, kept_tuning
from mlir_sched import TuneOptions, tune
from mlir_sched.compiler import ModelCompileError, compile_model
from mlir_sched.errors import UserError
from mlir_sched.payload import TensorSpec
from mlir_sched.targets import target_kind
from mlir_sched.targets.target import LOCAL, LOCAL_SYNC, Target
from mlir_sched.tasks import EntryPoint, extract
from mlir_sched.tuned_folder.names import FLAGS

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
        label: The program's column: ``IREE <variant>`` or ``mlir-sched``.
        detail: The file that the program was compiled from, when the operator has several; else empty.
        vmfb: File of the compiled program.
        entry: The function that is called.
        devices: IREE's devices on which the program is timed.
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
    """All programs of an operator; the results of the first are the reference.

    Attributes:
        programs: The programs that were compiled.
        flops: Operations that have to be done.
        moved_bytes: Bytes that have to be moved: inputs and outputs, once.
        tuning: Trials and seconds of mlir-sched; None when nothing was tuned.
        notes: Programs that could not be built and why, one sentence each.
    """

    programs: tuple[Compiled, ...]
    flops: int
    moved_bytes: int
    tuning: Tuning | None
    notes: tuple[str, ...]

    @property
    def entry(self) -> EntryPoint:
        """The entry point of the first program; all programs take and return the same tensors."""
        return self.programs[0].entry


def build(operator: Operator, target: Target, folder: Path, *, trials: int, seed: int) -> Built:
    """Compile an operator's files under every variant, and tune the first file with ``trials`` trials (0: not at all).

    Raises:
        UserError: IREE cannot compile one of the files, or no program could be built.
    """
    programs: list[Compiled] = []
    notes: list[str] = []
    tuning: Tuning | None = None
    counted, variants = 0, target_kind(target.name).variants
    for path in operator.files:
        model, tuned = extract(path, target), folder / f"tuned-{path.stem}"
        counted = counted or flops_of(model)
        detail = path.stem if len(operator.files) > 1 else ""
        flags = {f"IREE {name}": (*target.flags, *further) for name, further in variants.items()}
        if trials and path == operator.files[0]:
            flags[TUNED] = (f"@{tuned / FLAGS}",)
        for label, own in flags.items():
            output, devices = folder / f"{len(programs)}.vmfb", _devices(target.cores)
            try:
                if label == TUNED:
                    tuning = tune_once(path, tuned, TuneOptions(trials=trials, threads=target.cores, seed=seed))
                    devices = (_device_of(tuned, default=devices[0]),)
                compile_model(path, own, None, output)
            except (UserError, ModelCompileError) as error:
                notes.append(f"{label} {detail}: {str(error).splitlines()[0]}")
                continue
            programs.append(Compiled(label, detail, output, model.entries[0], devices))
    if not programs:
        raise UserError(f"{operator.name}: no program could be compiled: {'; '.join(notes)}")
    specs = (*programs[0].entry.inputs, *programs[0].entry.outputs)
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
    """Return the devices that an application with ``threads`` threads may choose."""
    return tuple(dict.fromkeys((LOCAL.device(threads), LOCAL_SYNC)))


def _device_of(tuned: Path, *, default: str) -> str:
    """Return the device for which a tuned folder's program was chosen, or ``default`` if the folder names none."""
    return str(json.loads((tuned / "summary.json").read_text())["program"].get("device", default))


def tune_once(path: Path, folder: Path, options: TuneOptions, parameters: Sequence[str] = ()) -> Tuning:
    """Tune a program into a folder unless the folder holds a finished tuning; return trials and seconds.

    Args:
        folder: The tuned folder; a file beside it holds the seconds of unfinished processes.
        options, parameters: As in :func:`mlir_sched.tune`.
    """
    took = kept_tuning(folder)
    if took is None:
        with Clock(folder.with_name(f"{folder.name}-seconds")) as clock:
            result = tune(path, folder, options=options, parameters=parameters)
        took = Tuning(result.trials, clock.seconds)
        took.keep(folder)
    return took
