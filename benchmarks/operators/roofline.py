"""The machine's ceilings as measured: peak of fused multiply-adds in f32, and bandwidth by the size of what is moved.

The peak is that of a kernel which IREE compiles: independent chains of multiply-adds in registers. Bandwidths are the
best of three patterns of NumPy (:data:`PATTERNS`) on as many bytes, at every power of two of them. What lies between
two sizes has the faster one's: data that are a little larger than a cache still find a part of themselves there. So no
size has a higher ceiling than a smaller one. ``python -m benchmarks.operators.roofline --cores 0,1`` prints these of
some cores as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise, repeat
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.operators.client import ROOT

ELEMENTS, LENGTH = 65536, 64
"""The peak's kernel: elements, and multiply-adds per chain."""

CHAINS = (8, 10, 12, 14)
"""Chains per vector that are tried; the fastest counts. A core with two units and a latency of 4 or 5 cycles keeps 8 or
10 in flight, and what starts late wants a few more; above 14 or so the registers are too few."""

ROUNDS, ROUND_S = 12, 0.03
BANDWIDTH_ROUNDS, BANDWIDTH_ROUND_S = 5, 0.015
PASS_BYTES = 8 << 20
"""Bytes that one call of a bandwidth kernel moves at least."""

SMALLEST_BYTES, BEYOND = 1 << 13, 4
"""Sizes whose bandwidth is measured: from this one to so many times the largest cache, by powers of two."""

DRAM = "DRAM"

_ALIVE: list[object] = []
"""IREE's devices, which have to outlive what was loaded on them."""


@dataclass(frozen=True)
class Level:
    """A ceiling for some sizes of data, up to that of the level and above that of the one before.

    Attributes:
        name: L1 to L3, or DRAM: the first cache that holds so much.
        size_bytes: Largest size, over all cores that are used; 0 means any.
        bytes_per_s: Bandwidth of these cores together.
    """

    name: str
    size_bytes: int
    bytes_per_s: float


@dataclass(frozen=True)
class Roofline:
    """Ceilings of some cores.

    Attributes:
        cores: Which.
        flops_per_s: Operations per second; a fused multiply-add is two.
        levels: By size, from the smallest; several of them are of one cache.
    """

    cores: tuple[int, ...]
    flops_per_s: float
    levels: tuple[Level, ...]

    def level(self, size_bytes: int) -> Level:
        """Return the smallest level that holds so much."""
        return next(level for level in self.levels if size_bytes <= level.size_bytes or not level.size_bytes)

    def seconds(self, flops: int, moved_bytes: int) -> tuple[float, str]:
        """Return the least seconds of a call with warm caches, and what bounds it: FMA or a level."""
        level = self.level(moved_bytes)
        compute_s, move_s = flops / self.flops_per_s, moved_bytes / level.bytes_per_s
        return (compute_s, "FMA") if compute_s >= move_s else (move_s, level.name)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Roofline:
        levels = tuple(Level(**level) for level in data["levels"])
        return Roofline(tuple(data["cores"]), data["flops_per_s"], levels)


def highest(found: Sequence[Roofline]) -> Roofline:
    """Return the ceilings of some cores of which each is the highest that was measured."""
    levels = zip(*(one.levels for one in found), strict=True)
    return Roofline(
        found[0].cores,
        max(one.flops_per_s for one in found),
        tuple(max(level, key=lambda one: one.bytes_per_s) for level in levels),
    )


def measure(cores: Sequence[int]) -> Roofline:
    """Measure some cores, in a process of its own that uses one BLAS thread per core.

    Raises:
        subprocess.CalledProcessError: It failed; it has said why.
    """
    command = [sys.executable, "-m", "benchmarks.operators.roofline", "--cores", ",".join(map(str, cores))]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    return Roofline.from_json(json.loads(done.stdout))


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
    """Return a call of the kernel on the calling thread, and its operations."""
    import iree.runtime as rt

    from mlir_sched.compiler import compile_to_bytes
    from mlir_sched.payload import TensorSpec
    from mlir_sched.runner.process.device import LocalDevice
    from mlir_sched.runner.program import Program
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
    run = loaded.bind([device.buffer(a, s) for a, s in zip(arrays, (vector, scalar, scalar), strict=True)], ())
    return (lambda: run(1)), 2 * chains * LENGTH * ELEMENTS


Kernel = tuple[Callable[[], object], int]
"""A call that moves data again and again, and the bytes that it moves."""


def _two_streams(size_bytes: int) -> Kernel:
    """Return dot products of two vectors of together ``size_bytes``."""
    elements = max(64, size_bytes // 8)
    passes = max(1, PASS_BYTES // (8 * elements))
    # the passes are a dimension of stride 0: NumPy's loop over them costs some 20 ns each
    left = np.broadcast_to(np.ones(elements, np.float32), (passes, 1, elements))
    right = np.broadcast_to(np.ones((elements, 1), np.float32), (passes, elements, 1))
    result = np.empty((passes, 1, 1), np.float32)
    return (lambda: np.matmul(left, right, out=result)), passes * elements * 8


def _one_stream(size_bytes: int) -> Kernel:
    """Return maxima of a vector of ``size_bytes``."""
    values, passes = np.ones(max(64, size_bytes // 4), np.float32), max(1, PASS_BYTES // size_bytes)

    def run() -> None:
        for _ in repeat(None, passes):
            values.max()

    return run, passes * values.nbytes


def _copy(size_bytes: int) -> Kernel:
    """Return copies of one half of ``size_bytes`` to the other; the bytes read and those written count."""
    elements = max(64, size_bytes // 8)
    passes = max(1, PASS_BYTES // (8 * elements))
    source, target = np.ones(elements, np.float32), np.empty(elements, np.float32)

    def run() -> None:
        for _ in repeat(None, passes):
            np.copyto(target, source)

    return run, passes * elements * 8


PATTERNS = (_two_streams, _one_stream, _copy)


def _rate(cores: Sequence[int], make: Callable[[], Kernel], *, rounds: int = ROUNDS, round_s: float = ROUND_S) -> float:
    """Return the most work per second that threads pinned to the cores did together in a round."""
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
    """Return the ceilings that follow from rates at some sizes.

    Args:
        rates: Bytes per second by size in bytes.
        caches: Bytes that each cache holds, by name, from the first to the last.
    """
    sizes = sorted(rates)
    # no ceiling is below one of larger data, which was reached
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cores", required=True, help="e.g. 0,1")
    cores = tuple(int(core) for core in parser.parse_args().cores.split(","))
    found = Roofline(cores, _peak(cores), _levels(cores))
    print(json.dumps(found.to_json()), flush=True)
    os._exit(0)  # IREE's runtime crashes when the interpreter takes it down


if __name__ == "__main__":
    main()
