"""A synthetic design space whose best schedule is hard to hit: search without a compiler or a device."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mlir_sched.errors import IllegalTraceError
from mlir_sched.models.cost_model import LoopGraph
from mlir_sched.sampling import Categorical, Distribution, PerfectTile, Permutation, PowerOfTwo, Value
from mlir_sched.trace import Recorder, Trace

Decide: TypeAlias = Callable[[str, Distribution], Value]
"""Names a random variable and returns its value, as ``Recorder.decide``."""

LANES = 8
REGISTERS = 16
CORES = 8
L1_BYTES = 32 << 10
L2_BYTES = 1 << 20
STACK_BYTES = 32 << 10
UNROLLED_OPS = 1024


@dataclass(frozen=True)
class SyntheticSchedule:
    """A schedule of a matrix multiplication: tile sizes, loop order, unrolling, fusion and packing."""

    sketch: str
    block: tuple[int, int, int]
    register: tuple[int, int]
    order: str
    unroll: int
    fused_at: str
    pack_width: int


@dataclass(frozen=True)
class SyntheticMatmulSpace:
    """Schedules of an ``m x n x k`` matrix multiplication on an imaginary eight-core CPU, with an analytic time.

    The time has the cliffs of the real thing: partial vectors, register spills, cache capacity, idle cores,
    per-block overhead and code size; some schedules are illegal and some fail.

    Attributes:
        m, n, k: Extents, >= 1.
    """

    m: int = 256
    n: int = 256
    k: int = 256

    @property
    def sketches(self) -> tuple[str, ...]:
        """Rows without register tiles, register tiles, and register tiles with a packed operand."""
        return ("rows", "tiled", "packed")

    def sample(self, rng: np.random.Generator, sketch: str | None = None) -> Trace:
        """Draw a legal trace of the given sketch, or of a uniformly drawn one."""
        chosen = sketch or self.sketches[int(rng.integers(len(self.sketches)))]
        return self.run(chosen, Recorder(rng=rng))[0]

    def repaired(self, trace: Trace) -> Trace:
        """Run the schedule program again on the trace's values; the trace's key is the seed for new variables."""
        rng = np.random.default_rng(int(trace.key, 16))
        return self.run(trace.sketch, Recorder(trace.values, rng))[0]

    def features(self, traces: Sequence[Trace]) -> NDArray[np.float32]:
        """Return ``[n_traces, 23]``: logarithms of sizes, footprints and counts, and one-hot choices."""
        return np.array([self._feature_row(self.schedule(trace)) for trace in traces], dtype=np.float32)

    def graphs(self, traces: Sequence[Trace]) -> list[LoopGraph]:
        """Return graphs of one node, which has the features of the trace."""
        return list(map(LoopGraph.of_row, self.features(traces)))

    def seconds(self, trace: Trace) -> float | None:
        """Return the time of the trace's schedule, seconds per call; None when it fails."""
        schedule = self.schedule(trace)
        pressure = self._pressure(schedule)
        if pressure > 4 * REGISTERS or (schedule.unroll == 8 and pressure > 2 * REGISTERS):
            return None
        return 2e-11 * self.m * self.n * self.k * self._slowdown(schedule, pressure) + 2e-8 * self._blocks(schedule)

    def run(self, sketch: str, recorder: Recorder) -> tuple[Trace, SyntheticSchedule]:
        """Run the program of a sketch; return its trace and the schedule that this describes."""
        self._program(sketch, recorder.decide)
        trace = recorder.finish(sketch)
        return trace, self.schedule(trace)

    def _program(self, sketch: str, decide: Decide) -> None:
        if sketch not in self.sketches:
            raise IllegalTraceError(f"there is no sketch {sketch!r}; known are {', '.join(self.sketches)}")
        rows = sketch == "rows"
        m = _sizes(decide("tile_m", PerfectTile(self.m, 1 if rows else 2, max_innermost=16)))
        n = _sizes(decide("tile_n", PerfectTile(self.n, 1 if rows else 2, max_innermost=64)))
        decide("tile_k", PerfectTile(self.k, 1))
        unroll = decide("unroll", PowerOfTwo(1, 8))
        if rows:
            return
        decide("order", Permutation(("m", "n", "k")))
        fused_at = decide("epilogue", Categorical(("block", "register")))
        if fused_at == "block" and 4 * m[0] * n[0] > STACK_BYTES:
            raise IllegalTraceError(f"a block of {m[0]} x {n[0]} does not fit into {STACK_BYTES} bytes of stack")
        volume = m[-1] * n[-1] * _number(unroll)
        if volume > UNROLLED_OPS:
            raise IllegalTraceError(f"{volume} unrolled multiply-adds, at most {UNROLLED_OPS} are allowed")
        if sketch == "packed" and decide("pack", Categorical(("lhs", "rhs"))) == "rhs":
            decide("pack_width", Categorical((8, 16, 32)))

    def schedule(self, trace: Trace) -> SyntheticSchedule:
        """Return the schedule that a trace's values describe."""
        values = trace.values
        m, n = _sizes(values["tile_m"]), _sizes(values["tile_n"])
        return SyntheticSchedule(
            sketch=trace.sketch,
            block=(m[0], n[0], _sizes(values["tile_k"])[0]),
            register=(m[-1], n[-1]) if len(m) > 1 else (1, n[0]),
            order="".join(str(loop) for loop in _items(values.get("order", ("m", "k", "n")))),
            unroll=_number(values["unroll"]),
            fused_at=str(values.get("epilogue", "block")),
            pack_width=_number(values.get("pack_width", 0)),
        )

    def _pressure(self, schedule: SyntheticSchedule) -> int:
        vectors = math.ceil(schedule.register[1] / LANES)
        return schedule.register[0] * vectors + vectors + 1

    def _blocks(self, schedule: SyntheticSchedule) -> int:
        return (self.m // schedule.block[0]) * (self.n // schedule.block[1]) * (self.k // schedule.block[2])

    def _bytes(self, schedule: SyntheticSchedule) -> int:
        m, n, k = schedule.block
        return 4 * (m * k + k * n + m * n)

    def _slowdown(self, schedule: SyntheticSchedule, pressure: int) -> float:
        rows, columns = schedule.register
        partial = math.ceil(columns / LANES) * LANES / columns
        accumulators = rows * math.ceil(columns / LANES)
        latency = max(1.0, 8.0 / (accumulators * min(schedule.unroll, 2)))
        spills = 1.0 + 0.6 * max(0, pressure - REGISTERS) / REGISTERS + (0.8 if pressure > REGISTERS else 0.0)
        loads = 1.0 + 1.5 / rows + 1.0 / columns
        code = 1.0 + (0.4 if schedule.unroll * accumulators > 64 else 0.0) + 0.1 / schedule.unroll
        parts = (self.m // schedule.block[0]) * (self.n // schedule.block[1])
        idle = math.ceil(parts / CORES) * CORES / parts
        return partial * latency * spills * loads * code * idle * self._memory(schedule)

    def _memory(self, schedule: SyntheticSchedule) -> float:
        panel = 4 * schedule.block[2] * schedule.register[1]
        stride = {8: 1.0, 16: 0.9, 32: 0.95}.get(schedule.pack_width, 1.15 if self.n >= 128 else 1.0)
        if schedule.pack_width and schedule.pack_width > schedule.register[1]:
            stride = 1.3
        cost = stride * (1.0 + (0.5 if panel > L1_BYTES / 2 else 0.0))
        cost *= 1.0 + (0.7 if self._bytes(schedule) > L2_BYTES / CORES else 0.0)
        cost *= {"mnk": 1.0, "nmk": 1.08, "mkn": 1.25, "nkm": 1.3, "kmn": 1.5, "knm": 1.55}[schedule.order]
        epilogue = 1.12 if (schedule.fused_at == "block") == (self.k // schedule.block[2] == 1) else 1.0
        return cost * epilogue * (1.06 if schedule.sketch == "packed" else 1.0)

    def _feature_row(self, schedule: SyntheticSchedule) -> list[float]:
        sizes = (*schedule.block, *schedule.register, schedule.unroll, schedule.pack_width)
        counts = (self._pressure(schedule), self._bytes(schedule), self._blocks(schedule))
        extents = (self.m, self.n, self.k)
        outer = [extent // size for extent, size in zip(extents, schedule.block, strict=True)]
        logs = [math.log2(1 + x) for x in (*sizes, *counts, *outer, *extents)]
        hot = [float(schedule.sketch == sketch) for sketch in self.sketches]
        order = [float(schedule.order.index(loop)) for loop in "mnk"]
        return [*logs, *hot, *order, float(schedule.fused_at == "block")]


def _sizes(value: Value) -> tuple[int, ...]:
    assert isinstance(value, tuple)
    return tuple(_number(size) for size in value)


def _items(value: Value) -> tuple[int | str, ...]:
    assert isinstance(value, tuple)
    return value


def _number(value: Value) -> int:
    assert isinstance(value, int)
    return value
