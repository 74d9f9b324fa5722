"""What is scheduled stays as it is while the language that says so changes.

Digests of traces, features and scripts are kept in ``golden/schedules.json``, over fixed seeds, per target, payload and
sketch. ``pytest --update-golden`` writes the file anew. A change of the file is a change of the design space, of the
features or of the scripts, and is looked through as one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np
import pytest
from convolution_payloads import CONVOLUTIONS
from fixed_targets import FIXED, FIXED_VULKAN
from folders import TESTS
from payload_text import Payload
from payloads import PAYLOADS

from mlir_sched.errors import IllegalTraceError
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace

TaskFor = Callable[[str | Payload], Task]
FILE = TESTS / "golden" / "schedules.json"
SEEDS, SCRIPTS = 60, 4
"""Traces drawn per sketch, and how many of them are printed as scripts."""
SERVER = replace(FIXED, description="+avx512f,+avx512bf16,+avx512vnni")
TARGETS: Mapping[str, Target] = {"cpu": FIXED, "cpu with dot products": SERVER, "vulkan": FIXED_VULKAN}
"""By name; a CPU that has dot products differs for products of bf16 and i8 alone."""
DOT_PRODUCTS = ("matmul_i8", "matmul_bf16")
CASES = [
    *(("cpu", name, payload) for name, payload in (PAYLOADS | CONVOLUTIONS).items()),
    *(("cpu with dot products", name, PAYLOADS[name]) for name in DOT_PRODUCTS),
    *(("vulkan", name, payload) for name, payload in PAYLOADS.items()),
]
IDS = [f"{target}: {name}" for target, name, _ in CASES]


@pytest.mark.sweep("landing")
@pytest.mark.parametrize(("target", "name", "payload"), CASES, ids=IDS)
def test_schedules_are_what_they_were(
    target: str,
    name: str,
    payload: Payload,
    task_for: TaskFor,
    vulkan_task_for: TaskFor,
    request: pytest.FixtureRequest,
) -> None:
    task = (vulkan_task_for if target == "vulkan" else task_for)(payload)
    assert task.dispatch is not None
    space = DesignSpace(Space.default(TARGETS[target]), task.dispatch, TARGETS[target])
    found = {sketch: digests_of(space, sketch) for sketch in space.sketches}
    frozen = json.loads(FILE.read_text()) if FILE.exists() else {}
    if request.config.getoption("--update-golden"):
        known = {**frozen, f"{target}: {name}": found}
        kept = {key: known[key] for key in IDS if key in known}
        FILE.write_text(json.dumps(kept, indent=1) + "\n")
    else:
        assert found == frozen[f"{target}: {name}"], "schedules changed; if that is meant: pytest --update-golden"


def digests_of(space: DesignSpace, sketch: str) -> dict[str, str]:
    """Return digests of what the seeds draw: traces (or that one is refused), their features, the first scripts."""
    drawn = [attempt(space, sketch, seed) for seed in range(SEEDS)]
    traces = [trace for trace in drawn if trace is not None]
    return {
        "traces": digest(json.dumps(trace.values) if trace else "refused" for trace in drawn),
        "features": digest(f"{number:.4g}" for number in space.features(traces).flat),
        "scripts": digest(map(space.script, traces[:SCRIPTS])),
    }


def attempt(space: DesignSpace, sketch: str, seed: int) -> Trace | None:
    try:
        return space.attempt(np.random.default_rng(seed), sketch)
    except IllegalTraceError:
        return None


def digest(texts: Iterable[str]) -> str:
    found = hashlib.sha256()
    for text in texts:
        found.update(text.encode() + b"\0")
    return found.hexdigest()[:16]
