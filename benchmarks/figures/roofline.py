"""The machine's measured ceilings: peak of fused multiply-adds in f32, and bandwidth by the size of the data.

The peak is that of a kernel which IREE compiles: independent chains of multiply-adds in registers. The bandwidth is
measured for sizes that are powers of two, as the best of three NumPy patterns (:data:`PATTERNS`). Sizes between two
measured sizes get the bandwidth of the faster, smaller one: data a little larger than a cache are still partly in the
cache. So no size has a higher ceiling than a smaller size.

``python -m benchmarks roofline --cores 0,1`` prints the ceilings of these cores as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise, repeat
from pathlib import Path

import numpy as np

from benchmarks.kept import converter
from benchmarks.peers.client import run_module

ELEMENTS, LENGTH = 65536, 64
"""Elements of the kernel that measures the peak, and multiply-adds per chain."""

CHAINS = (8, 10, 12, 14)
"""Chains per vector that are tried; the fastest number counts. A core with two units and a latency of 4 or 5 cycles has
8 or 10 multiply-adds in flight, and needs a few more chains as some start late; above about 14 chains the registers do
not suffice."""

ROUNDS, ROUND_S = 12, 0.03
BANDWIDTH_ROUNDS, BANDWIDTH_ROUND_S = 5, 0.015
PASS_BYTES = 8 << 20
"""Approximate number of bytes that one call of a bandwidth kernel moves; more when the data themselves are larger."""

SMALLEST_BYTES, BEYOND = 1 << 13, 4
"""Smallest size whose bandwidth is measured, and the limit of the largest size, as a multiple of the largest cache."""

DRAM = "DRAM"
TIMEOUT_S = 600.0
"""Seconds that the measurement may take; it takes less than a minute on a quiet machine."""

_ALIVE: list[object] = []
"""IREE's devices, which have to outlive the programs loaded on them."""


@dataclass(frozen=True)
class Level:
    """A ceiling for data up to the level's size and larger than the previous level's size.

    Attributes:
        name: Name of the first cache that holds this size, L1 to L3, or else DRAM.
        size_bytes: Largest size of the data, summed over all cores that are used; 0 means any size.
        bytes_per_s: Bandwidth of these cores together.
    """

    name: str
    size_bytes: int
    bytes_per_s: float


@dataclass(frozen=True)
class Roofline:
    """Ceilings of some cores.

    Attributes:
        cores: The numbers of the cores.
        flops_per_s: Operations per second; a fused multiply-add is two.
        levels: Levels from the smallest size to the largest; a cache has several levels.
    """

    cores: tuple[int, ...]
    flops_per_s: float
    levels: tuple[Level, ...]

    def level(self, size_bytes: int) -> Level:
        """Return the smallest level that holds data of a size."""
        return next(level for level in self.levels if size_bytes <= level.size_bytes or not level.size_bytes)

    def seconds(self, flops: int, moved_bytes: int) -> tuple[float, str]:
        """Return the least seconds of a call with warm caches, and its bound: FMA or the name of a level."""
        level = self.level(moved_bytes)
        compute_s, move_s = flops / self.flops_per_s, moved_bytes / level.bytes_per_s
        return (compute_s, "FMA") if compute_s >= move_s else (move_s, level.name)


def highest(found: Sequence[Roofline]) -> Roofline:
    """Return the highest measured value of each ceiling, from several measurements of the same cores."""
    levels = zip(*(one.levels for one in found), strict=True)
    return Roofline(
        found[0].cores,
        max(one.flops_per_s for one in found),
        tuple(max(level, key=lambda one: one.bytes_per_s) for level in levels),
    )


def measure(cores: Sequence[int]) -> Roofline:
    """Measure the ceilings of some cores, in a separate process in which BLAS adds no threads of its own.

    Raises:
        PeerError: The process failed.
    """
    alone = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    arguments = "benchmarks", "roofline", "--cores", ",".join(map(str, cores))
    printed = run_module(*arguments, timeout_s=TIMEOUT_S, environment=alone)
    return converter().structure(json.loads(printed), Roofline)


def multiply_adds(chains: int) -> str:
    """Return a program with ``chains`` chains of multiply-adds per element, summed at the end."""
    starts = [f"%c{k}_0 = arith.addf %x, %s{k} : f32" for k in range(chains)]
    steps = [
        f"%c{k}_{i + 1} = math.fma %c{k}_{i}, %a, %b : f32" for i in range(LENGTH) for k in range(chains)
    ]  # interleaved, so that they can run at the same time
    sums = [
        f"%t{k} = arith.addf {f'%t{k - 1}' if k > 1 else f'%c0_{LENGTH}'}, %c{k}_{LENGTH} : f32"
        for k in range(1, chains)
    ]
    body = "\n    ".join([*starts, *steps, *sums])
    constants = "\n  ".join(f"%s{k} = arith.constant {1 + k / 16} : f32" for k in range(chains))
    return f"""
#each = affine_map<(i) -> (i)>
#one = affine_map<(i) -> ()>
func.func @main(%xs: tensor<{ELEMENTS}xf32>, %as: tensor<f32>, %bs: tensor<f32>) -> tensor<{ELEMENTS}xf32> {{
  {constants}
  %empty = tensor.empty() : tensor<{ELEMENTS}xf32>
  %result = linalg.generic {{indexing_maps = [#each, #one, #one, #each], iterator_types = ["parallel"]}}
      ins(%xs, %as, %bs : tensor<{ELEMENTS}xf32>, tensor<f32>, tensor<f32>) outs(%empty : tensor<{ELEMENTS}xf32>) {{
  ^bb0(%x: f32, %a: f32, %b: f32, %unused: f32):
    {body}
    linalg.yield %t{chains - 1} : f32
  }} -> tensor<{ELEMENTS}xf32>
  return %result : tensor<{ELEMENTS}xf32>
}}
"""


def _peak(cores: Sequence[int]) -> float:
    return max(_rate(cores, partial(_multiply_adds_kernel, chains)) for chains in CHAINS)


def _multiply_adds_kernel(chains: int) -> Kernel:
    """Return a call of the peak's kernel on the calling thread, and the call's number of operations."""
    import iree.runtime as rt

    from mlir_sched.compiler import compile_to_bytes
    from mlir_sched.payload import TensorSpec
    from mlir_sched.runner.program import Program
    from mlir_sched.runner.worker.device import LocalDevice
    from mlir_sched.targets.llvm_cpu import FLAGS

    scalar, vector = TensorSpec((), "f32"), TensorSpec((ELEMENTS,), "f32")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "peak.mlir"
        source.write_text(multiply_adds(chains))
        vmfb = compile_to_bytes(source, FLAGS)
    device = LocalDevice(rt.VmInstance(), "local-sync")
    _ALIVE.append(device)
    loaded = device.load(Program(vmfb, "main", (vector, scalar, scalar), (vector,), writes_into_arguments=False))
    arrays = (np.ones(ELEMENTS, np.float32), np.array(0.5, np.float32), np.array(0.5, np.float32))
    buffers = [device.buffer(a, s) for a, s in zip(arrays, (vector, scalar, scalar), strict=True)]
    run = loaded.bind([buffers], ())
    return (lambda: run(1)), 2 * chains * LENGTH * ELEMENTS


Kernel = tuple[Callable[[], object], int]
"""A function that does work repeatedly, and the amount of work per call: bytes moved, or operations."""


def _two_streams(size_bytes: int) -> Kernel:
    """Return a kernel of dot products of two vectors that have ``size_bytes`` together."""
    elements = max(64, size_bytes // 8)
    passes = max(1, PASS_BYTES // (8 * elements))
    # the passes are a dimension of stride 0, over which NumPy loops at a cost of some 20 ns per pass
    left = np.broadcast_to(np.ones(elements, np.float32), (passes, 1, elements))
    right = np.broadcast_to(np.ones((elements, 1), np.float32), (passes, elements, 1))
    result = np.empty((passes, 1, 1), np.float32)
    return (lambda: np.matmul(left, right, out=result)), passes * elements * 8


def _one_stream(size_bytes: int) -> Kernel:
    """Return a kernel of maxima of a vector of ``size_bytes``."""
    values, passes = np.ones(max(64, size_bytes // 4), np.float32), max(1, PASS_BYTES // size_bytes)

    def run() -> None:
        for _ in repeat(None, passes):
            values.max()

    return run, passes * values.nbytes


def _copy(size_bytes: int) -> Kernel:
    """Return a kernel that copies one half of ``size_bytes`` to the other; bytes read and bytes written both count."""
    elements = max(64, size_bytes // 8)
    passes = max(1, PASS_BYTES // (8 * elements))
    source, target = np.ones(elements, np.float32), np.empty(elements, np.float32)

    def run() -> None:
        for _ in repeat(None, passes):
            np.copyto(target, source)

    return run, passes * elements * 8


PATTERNS = (_two_streams, _one_stream, _copy)


def _rate(cores: Sequence[int], make: Callable[[], Kernel], *, rounds: int = ROUNDS, round_s: float = ROUND_S) -> float:
    """Return the largest amount of work per second that threads pinned to the cores did together in any round."""
    rates = [[0.0] * rounds for _ in cores]
    barrier = threading.Barrier(len(cores))
    lock = threading.Lock()

    def work(index: int, core: int) -> None:
        os.sched_setaffinity(0, {core})  # of this thread alone
        with lock:
            call, amount = make()
        call()
        for round_ in range(rounds):
            barrier.wait()
            calls, start = 0, time.perf_counter()
            while (now := time.perf_counter()) - start < round_s:
                call()
                calls += 1
            rates[index][round_] = calls * amount / (now - start)

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(cores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return max(map(sum, zip(*rates, strict=True)))


def levels_of(rates: Mapping[int, float], caches: Mapping[str, int]) -> tuple[Level, ...]:
    """Return the bandwidth levels that follow from the rates measured at some sizes.

    Args:
        rates: Bytes per second by size in bytes.
        caches: Bytes that each cache holds, by name, from the first to the last.
    """
    sizes = sorted(rates)
    # no ceiling is below a rate that was measured on larger data
    best = {size: max(rates[larger] for larger in sizes if larger >= size) for size in sizes}
    rungs = [(sizes[0], sizes[0]), *pairwise(sizes)]
    found = [Level(_cache_for(size, caches), size, best[below]) for below, size in rungs]
    return (*found, Level(DRAM, 0, best[sizes[-1]]))


def _cache_for(size_bytes: int, caches: Mapping[str, int]) -> str:
    return next((name for name, holds in caches.items() if size_bytes <= holds), DRAM)


def _levels(cores: Sequence[int]) -> tuple[Level, ...]:
    from mlir_sched.targets.llvm_cpu import data_cache_bytes

    count = len(cores)
    # the third cache is shared
    caches = {f"L{number}": data_cache_bytes(number) * (1 if number == 3 else count) for number in (1, 2, 3)}
    largest = max(*caches.values(), 1 << 20)
    sizes = [SMALLEST_BYTES << power for power in range((BEYOND * largest // SMALLEST_BYTES).bit_length())]
    return levels_of({size: _best_rate(cores, size) for size in sizes}, caches)


def _best_rate(cores: Sequence[int], size_bytes: int) -> float:
    share = size_bytes // len(cores)
    rates = (
        _rate(cores, partial(pattern, share), rounds=BANDWIDTH_ROUNDS, round_s=BANDWIDTH_ROUND_S)
        for pattern in PATTERNS
    )
    return max(rates)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks roofline", description=__doc__)
    parser.add_argument("--cores", required=True, help="e.g. 0,1")
    cores = tuple(int(core) for core in parser.parse_args().cores.split(","))
    found = Roofline(cores, _peak(cores), _levels(cores))
    print(json.dumps(asdict(found)), flush=True)
    os._exit(0)  # IREE's runtime crashes when the interpreter takes it down
