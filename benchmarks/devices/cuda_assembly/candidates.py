"""Random legal candidates of every sketch, over the programs that the sketch applies to; compiled, then assembled."""

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.devices.cuda_assembly.records import UNTUNED, Entry
from mlir_sched.compiler import CompileResult, CompilerPool
from mlir_sched.compiler.worker_process import candidate_limits
from mlir_sched.errors import IllegalTraceError
from mlir_sched.gpu_model.ptx import PtxError, device_code
from mlir_sched.gpu_model.ptxas import AssemblyError, Resources, assemble, find_assembler
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks import extract
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace

ASSEMBLERS = 2
"""Assemblers that run beside the compilers."""
ATTEMPTS = 100
"""Draws per legal one after which a sketch is left with fewer."""


@dataclass(frozen=True)
class Program:
    """A program's first dispatch that a space schedules."""

    name: str
    task: Task
    space: DesignSpace


@dataclass(frozen=True)
class Draws:
    """Draws from one sketch of one program.

    Attributes:
        sketch: The sketch.
        attempts: Number of draws.
        legal: Those that broke no rule, in their order; a trace may be drawn again.
    """

    program: Program
    sketch: str
    attempts: int
    legal: Sequence[Trace]

    @property
    def names(self) -> list[tuple[str, str, str]]:
        """The name of every legal draw's entry."""
        return [(self.program.name, self.sketch, trace.key) for trace in self.legal]


def program_of(model: Path, space: Space, target: Target) -> Program | None:
    """Return the first dispatch of a model that the space schedules; None when there is none."""
    for task in extract(model, target).tasks:
        if task.dispatch is not None and space.sketches(task.dispatch, target):
            return Program(model.stem, task, DesignSpace(space, task.dispatch, target))
    return None


def draw(programs: Sequence[Program], traces: int) -> dict[str, list[Draws]]:
    """Return at least so many legal draws of every sketch, in equal parts of all programs that have the sketch."""
    drawn: dict[str, list[Draws]] = {}
    for sketch in dict.fromkeys(name for program in programs for name in program.space.sketches):
        having = [program for program in programs if sketch in program.space.sketches]
        drawn[sketch] = [_drawn(program, sketch, -(-traces // len(having))) for program in having]
    return drawn


def _drawn(program: Program, sketch: str, wanted: int) -> Draws:
    rng, legal, attempts = np.random.default_rng(0), list[Trace](), 0
    while len(legal) < wanted:
        attempts += 1
        try:
            legal.append(program.space.attempt(rng, sketch))
        except IllegalTraceError:
            if attempts >= ATTEMPTS * wanted:
                break
    return Draws(program, sketch, attempts, legal)


def compiled(
    program: Program, sketch: str, traces: Sequence[Trace | None], architectures: Sequence[str], timeout_s: float
) -> Iterator[Entry]:
    """Compile traces, or the code without a script, and yield what becomes of each, in any order.

    Args:
        traces: The traces; None is the code without a script.
        timeout_s: Seconds that a compilation may take.
    """
    scripts = [None if trace is None else program.space.script(trace) for trace in traces]
    entries = deque[Future[Entry]]()
    workers = len(os.sched_getaffinity(0))
    limits = replace(candidate_limits(workers), timeout_s=timeout_s)
    with (
        CompilerPool(program.task.flags, workers=workers, limits=limits) as pool,
        ThreadPoolExecutor(ASSEMBLERS) as threads,
    ):
        for index, result in pool.compile(program.task.source, scripts):
            entries.append(threads.submit(_entry, program.name, sketch, traces[index], result, architectures))
            while entries and entries[0].done():
                yield entries.popleft().result()
        yield from (entry.result() for entry in entries)


def _entry(model: str, sketch: str, trace: Trace | None, result: CompileResult, architectures: Sequence[str]) -> Entry:
    key, values = (UNTUNED, {}) if trace is None else (trace.key, trace.values)
    if result.failure is not None:
        return Entry(model, sketch, key, values, f"{result.failure.kind.value}: {result.failure.message}")
    assert result.vmfb is not None
    try:
        code = device_code(result.vmfb)
    except PtxError as error:
        return Entry(model, sketch, key, values, f"PTX: {error}")
    resources, refused = _assembled(code, architectures)
    return Entry(model, sketch, key, values, "", result.launch, code, resources, refused)


def _assembled(code: str, architectures: Sequence[str]) -> tuple[dict[str, Resources], dict[str, str]]:
    """Return what code takes by architecture, and what the assembler says against the code by architecture."""
    resources, refused = dict[str, Resources](), dict[str, str]()
    for architecture in architectures:
        try:
            resources[architecture] = assemble(find_assembler(), code, architecture)
        except AssemblyError as error:
            refused[architecture] = str(error)
    return resources, refused
