"""The convolutions of a program: which shapes it has, and how often each occurs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iree.compiler import ir

from benchmarks.operators.shape_programs import layout_of
from mlir_sched.compiler import compile_model
from mlir_sched.compiler.operations import walk
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.program.rewrites.convolution_ops import dilations_of, is_static_f32, strides_of
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.script.form import script_context

_AS_READ = (
    "--compile-to=abi",
    "--mlir-elide-elementsattrs-if-larger=16",
    "--mlir-elide-resource-strings-if-larger=16",
)
"""Flags that stop where a program is in linalg, and leave out weights, which are most of its text."""
_KINDS = ("conv_", "depthwise_conv_")
"""How the names of convolutions begin."""


@dataclass(frozen=True)
class Convolution:
    """A two-dimensional convolution in f32, in whatever layout a program has it.

    Attributes:
        batch: Number of images.
        image: Rows and columns of an image, with its padding.
        channels, filters: Channels of the image, and of the result.
        window, strides, dilations: Along rows and columns.
        depthwise: Whether every channel has a filter of its own.
    """

    batch: int
    image: tuple[int, int]
    channels: int
    filters: int
    window: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    depthwise: bool

    @property
    def pixels(self) -> tuple[int, int]:
        """Rows and columns of the result."""
        rows, columns = (
            (size - dilation * (taps - 1) - 1) // stride + 1
            for size, taps, stride, dilation in zip(self.image, self.window, self.strides, self.dilations, strict=True)
        )
        return rows, columns

    @property
    def has_window(self) -> bool:
        """Whether a result reads its pixel elsewhere than at its own place."""
        return self.window != (1, 1) or self.strides != (1, 1)

    @property
    def name(self) -> str:
        """What it is called in tables: equal names are equal convolutions."""
        window = f"depthwise {_by(self.window)}" if self.depthwise else f"{_by(self.window)} to {self.filters}"
        more = {"stride": self.strides, "dilation": self.dilations}
        parts = [_by((*self.image, self.channels)), window]
        parts += [f"{what} {_by([*dict.fromkeys(sizes)])}" for what, sizes in more.items() if sizes != (1, 1)]
        return ", ".join([*parts, *([f"batch {self.batch}"] if self.batch > 1 else [])])


@dataclass(frozen=True)
class ProgramConvolutions:
    """The convolutions of a program.

    Attributes:
        name: The program's name.
        counts: How often each occurs, in the order of the program.
        left_out: How many others there are by the name of their op: grouped, of other ranks or other types.
    """

    name: str
    counts: dict[Convolution, int]
    left_out: dict[str, int]


def convolutions_of(path: Path, target: Target) -> ProgramConvolutions:
    """Return the convolutions of a program in a file that ``iree-compile`` reads.

    Raises:
        ModelCompileError: IREE does not read it.
    """
    with temporary_folder() as folder, script_context(), ir.Location.unknown():
        read = Path(folder) / "program.mlir"
        compile_model(path, (*target.flags, *_AS_READ), None, read)
        program = ir.Module.parse(read.read_text())
        found = [(op.name, convolution_of(op)) for op in walk(program.operation) if _is_convolution(op)]
    counts = Counter(convolution for _, convolution in found if convolution is not None)
    return ProgramConvolutions(_name(path), dict(counts), dict(Counter(name for name, one in found if one is None)))


def convolution_of(op: Any) -> Convolution | None:
    """Return what a named convolution computes; None for one that is grouped, of another rank or of another type."""
    layout, taps = layout_of(op.name.removeprefix("linalg."))
    depthwise = {"fchw": False, "chw": True}
    kind = depthwise.get("".join(sorted(taps, key="fchw".find)))
    if kind is None or sorted(layout) != sorted("nchw") or not all(map(is_static_f32, op.operands)):
        return None
    image = dict(zip(layout, op.operands[0].type.shape, strict=True))
    kernel = dict(zip(taps, op.operands[1].type.shape, strict=True))
    return Convolution(
        image["n"],
        (image["h"], image["w"]),
        image["c"],
        image["c"] if kind else kernel["f"],
        (kernel["h"], kernel["w"]),
        _pair(strides_of(op, 2)),
        _pair(dilations_of(op, 2)),
        kind,
    )


def _is_convolution(op: Any) -> bool:
    return bool(op.name.removeprefix("linalg.").startswith(_KINDS))


def _name(path: Path) -> str:
    """Return the name of a program: that of its folder where an export has put it there as ``model.mlir``."""
    return path.resolve().parent.name if path.stem == "model" else path.stem


def _pair(sizes: Sequence[int]) -> tuple[int, int]:
    rows, columns = sizes
    return rows, columns


def _by(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes))
