"""The machine's ceilings as measured: peak of fused multiply-adds, and read bandwidth of every cache level.

The peak is that of a kernel which IREE compiles: independent chains of multiply-adds in registers. Bandwidths are those
of NumPy's dot product of two vectors which together fill half of a level; on a level that is shared, all threads
together do. ``python -m benchmarks.operators.roofline --cores 0,1`` measures these cores and prints JSON.
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
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.operators.client import ROOT

ELEMENTS, LENGTH = 65536, 64
"""The peak's kernel: elements, and multiply-adds per chain."""

CHAINS = (2, 4, 8)
"""Chains per element that are tried; IREE's vectors add more. The fastest counts."""

ROUNDS, ROUND_S = 12, 0.03
PASS_BYTES = 32 << 20
"""Bytes that one call of the bandwidth kernel reads at least."""

DRAM = "DRAM"

_ALIVE: list[object] = []
"""IREE's devices, which have to outlive what was loaded on them."""


@dataclass(frozen=True)
class Level:
    """A level of the memory.

    Attributes:
        name: L1 to L3, or DRAM.
        size_bytes: What it holds, over all cores that are used; 0 means anything.
        bytes_per_s: Read bandwidth of these cores together.
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
        levels: From the first cache to the memory.
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


def _multiply_adds_kernel(chains: int) -> tuple[Callable[[], object], int]:
    """Return a call of the kernel on the calling thread, and its operations."""
    import iree.runtime as rt

    from mlir_sched.compiler import compile_to_bytes
    from mlir_sched.payload import TensorSpec
    from mlir_sched.runner.device import LocalDevice
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


def _dot_kernel(size_bytes: int) -> tuple[Callable[[], object], int]:
    """Return a call that reads two vectors of together ``size_bytes`` again and again, and the bytes it reads."""
    elements = max(64, size_bytes // 8)
    passes = max(1, PASS_BYTES // (8 * elements))
    # the passes are a dimension of stride 0: NumPy's loop over them costs some 20 ns each
    left = np.broadcast_to(np.ones(elements, np.float32), (passes, 1, elements))
    right = np.broadcast_to(np.ones((elements, 1), np.float32), (passes, elements, 1))
    result = np.empty((passes, 1, 1), np.float32)
    return (lambda: np.matmul(left, right, out=result)), passes * elements * 8


def _rate(cores: Sequence[int], make: Callable[[], tuple[Callable[[], object], int]]) -> float:
    """Return the most work per second that threads pinned to the cores did together in a round."""
    rates = [[0.0] * ROUNDS for _ in cores]
    barrier = threading.Barrier(len(cores))
    lock = threading.Lock()

    def work(index: int, core: int) -> None:
        os.sched_setaffinity(0, {core})  # of this thread alone
        with lock:
            call, amount = make()
        call()
        for round_ in range(ROUNDS):
            barrier.wait()
            calls, start = 0, time.perf_counter()
            while (now := time.perf_counter()) - start < ROUND_S:
                call()
                calls += 1
            rates[index][round_] = calls * amount / (now - start)

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(cores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return max(map(sum, zip(*rates, strict=True)))


def _levels(cores: Sequence[int]) -> tuple[Level, ...]:
    from mlir_sched.targets.llvm_cpu import data_cache_bytes

    count = len(cores)
    levels = []
    largest = 1 << 20
    for number in (1, 2, 3):
        size = data_cache_bytes(number)
        if size:
            share = size // 2 // (count if number == 3 else 1)
            rate = _rate(cores, partial(_dot_kernel, share))
            levels.append(Level(f"L{number}", size * (1 if number == 3 else count), rate))
            largest = max(largest, size)
    rate = _rate(cores, partial(_dot_kernel, 4 * largest // count))
    return (*levels, Level(DRAM, 0, rate))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cores", required=True, help="e.g. 0,1")
    cores = tuple(int(core) for core in parser.parse_args().cores.split(","))
    found = Roofline(cores, _peak(cores), _levels(cores))
    print(json.dumps(found.to_json()), flush=True)
    os._exit(0)  # IREE's runtime crashes when the interpreter takes it down


if __name__ == "__main__":
    main()
