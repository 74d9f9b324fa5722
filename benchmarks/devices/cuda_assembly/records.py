"""What became of one candidate, as lines of JSON: a run that is cut off goes on where it ended."""

import base64
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.kept import converter
from mlir_sched.compiler.compile_result import Launch
from mlir_sched.gpu_model.estimate import Estimate, estimate
from mlir_sched.gpu_model.ptx import Kernel, read_kernel
from mlir_sched.gpu_model.ptxas import Resources
from mlir_sched.targets.target import GpuResources

UNTUNED = "untuned"
"""Sketch and key of the code without a script."""


@dataclass(frozen=True)
class Entry:
    """What became of one candidate.

    Attributes:
        model: Name of the program.
        sketch: Name of the sketch.
        key: The trace's key.
        values: The trace's decisions.
        failure: Why there is no code: class and message; empty when there is.
        launch: How the code is launched.
        ptx: The code.
        resources: What the assembled code takes, by architecture.
        refused: What the assembler says against the code, by architecture: an error or a warning.
    """

    model: str
    sketch: str
    key: str
    values: Mapping[str, Any]
    failure: str = ""
    launch: Launch | None = None
    ptx: str = ""
    resources: Mapping[str, Resources] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> tuple[str, str, str]:
        """What tells the candidate from all others."""
        return self.model, self.sketch, self.key

    @property
    def ran_out_of_time(self) -> bool:
        """Whether compiler or assembler were ended by their time limit, as on a busy machine."""
        return any("stopped after" in text for text in (self.failure, *self.refused.values()))

    @property
    def asked(self) -> set[str]:
        """Special instructions that the trace asks for: ``mma.sync`` by tiles of warps, ``cp.async`` by a pipeline."""
        warps = self.sketch == "tensor_core" or (self.sketch == "lowering_config" and "tile_rows" in self.values)
        pipelined = self.values.get("pipeline_depth", 1) != 1
        return {opcode for opcode, wanted in (("mma.sync", warps), ("cp.async", pipelined)) if wanted}

    @cached_property
    def kernel(self) -> Kernel:
        """The code of the kernel."""
        return read_kernel(self.ptx)

    def trouble(self, architecture: str) -> str:
        """Return the class of what is wrong with the candidate for an architecture; empty when all is right."""
        refused = "assembly_error" if architecture in self.refused else ""
        return self.failure.partition(":")[0] or refused

    def estimate(self, architecture: str, device: GpuResources, footprint_bytes: int) -> Estimate:
        """Return what the model of a device says of the code."""
        assert self.launch is not None
        resources = self.resources[architecture]
        return estimate(self.kernel, resources, self.launch, device, footprint_bytes=footprint_bytes)

    def line(self) -> str:
        """Return the line of a file."""
        packed = base64.b85encode(zlib.compress(self.ptx.encode())).decode()
        return json.dumps({**asdict(self), "ptx": packed})


def read_entries(path: Path) -> dict[tuple[str, str, str], Entry]:
    """Return the entries of a file by name; a last line that was cut off, or a missing file, has none."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    found = [_entry(json.loads(line)) for line in lines if line.endswith("\n")]
    return {entry.name: entry for entry in found}


def append_entries(path: Path, entries: Iterable[Entry]) -> Iterable[Entry]:
    """Write every entry as soon as it is known, behind the last whole line of the file, and yield the entry."""
    if path.exists():
        text = path.read_bytes()
        path.write_bytes(text[: text.rfind(b"\n") + 1])
    with path.open("a") as file:
        for entry in entries:
            file.write(entry.line() + "\n")
            file.flush()
            yield entry


def _entry(data: dict[str, Any]) -> Entry:
    ptx = zlib.decompress(base64.b85decode(data["ptx"])).decode()
    return converter().structure({**data, "ptx": ptx}, Entry)
