"""What the runner says of a whole program, and what a user sees with IREE's own tool, are the same."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from iree.compiler.tools import compile_str
from iree_cases import FLAGS

from mlir_sched.payload import TensorSpec
from mlir_sched.runner import Program, Runner, RunnerOptions
from mlir_sched.runner.benchmark_module import find_tools
from mlir_sched.runner.checks.numeric_checks import checks_for_model
from mlir_sched.targets.target import LOCAL

pytestmark = [pytest.mark.landing, pytest.mark.alone]

DISPATCHES, ROWS, WIDTH = 50, 256, 128
TOLERANCE = 0.1
TRIES = 3
X = TensorSpec((ROWS, WIDTH), "f32")
LAYER = """
  %w{i} = arith.constant dense_resource<w{i}> : tensor<{n}x{n}xf32>
  %y{i} = linalg.matmul ins(%y{before}, %w{i} : tensor<{m}x{n}xf32>, tensor<{n}x{n}xf32>)
    outs(%f : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>"""


def network() -> str:
    """Return a program of 50 products in a row, each with weights of its own: 3 MB of them."""
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((WIDTH, WIDTH), dtype=np.float32) / WIDTH**0.5 for _ in range(DISPATCHES)]
    layers = "".join(LAYER.format(i=i + 1, before=i, m=ROWS, n=WIDTH) for i in range(DISPATCHES))
    resources = ",\n".join(f'w{i + 1}: "0x04000000{w.tobytes().hex()}"' for i, w in enumerate(weights))
    shape = f"tensor<{ROWS}x{WIDTH}xf32>"
    return f"""
func.func public @main(%y0: {shape}) -> {shape} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {shape}
  %f = linalg.fill ins(%zero : f32) outs(%e : {shape}) -> {shape}
{layers}
  return %y{DISPATCHES} : {shape}
}}
{{-# dialect_resources: {{ builtin: {{ {resources} }} }} #-}}
"""


@pytest.fixture(scope="module")
def vmfb() -> bytes:
    compiled = compile_str(network(), extra_args=list(FLAGS))
    assert isinstance(compiled, bytes)
    return compiled


def tool_s(vmfb: Path, core: int) -> float:
    """Return the seconds per call that ``iree-benchmark-module`` finds on the same core and allocator."""
    command = [
        "taskset", "-c", str(core), find_tools()[0], f"--module={vmfb}", "--function=main", "--device=local-sync",
        "--device_allocator=caching", f"--input={ROWS}x{WIDTH}xf32=1", "--benchmark_repetitions=5",
        "--benchmark_min_time=0.1s", "--benchmark_format=json",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, check=True)
    report = json.loads(done.stdout)["benchmarks"]
    (median,) = (row for row in report if row.get("aggregate_name") == "median")
    assert median["time_unit"] == "ms"
    return float(median["real_time"]) * 1e-3


def test_a_program_of_50_dispatches_takes_as_long_in_turns_with_another_as_with_irees_tool(
    vmfb: bytes, tmp_path: Path
) -> None:
    module = tmp_path / "model.vmfb"
    module.write_bytes(vmfb)
    program = Program(vmfb, "main", (X,), (X,), writes_into_arguments=False)
    seen = []
    for _ in range(TRIES):  # a neighbour may be busy during either of the two
        with Runner(RunnerOptions.final(LOCAL)) as runner:
            _, (other,) = runner.measure(program, [program], checks_for_model(program.outputs))
            assert other.timing is not None
            ours_s = other.timing.median_s
            theirs_s = tool_s(module, runner.cores[0])
        seen.append((ours_s, theirs_s))
        if abs(ours_s - theirs_s) <= TOLERANCE * theirs_s:
            return
    pytest.fail(f"runner and iree-benchmark-module disagree, seconds per call: {seen}")
