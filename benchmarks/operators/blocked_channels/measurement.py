"""Tunes a convolution in every layout, compares the numbers, and times the programs in turns."""

from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.figures.rows import IREE
from benchmarks.figures.sampling import Samples, TimedWay, interleave
from benchmarks.operators.blocked_channels.convolutions import Convolution
from benchmarks.operators.blocked_channels.forms import BLOCKED, LAST, PACKED, Form, forms_of
from benchmarks.operators.comparison import IREE_PEERS
from benchmarks.operators.programs import Compiled
from benchmarks.peers.client import PeerProcess
from benchmarks.search.composition.search import Setting as SearchSetting
from benchmarks.search.composition.search import search
from benchmarks.search.composition.spaces import NamedSpace
from mlir_sched.compiler import ModelCompileError, compile_showing
from mlir_sched.database.record import Record
from mlir_sched.evaluation.evaluator import Evaluator
from mlir_sched.library.library import TunedSequence, build_library, sequence_symbol
from mlir_sched.runner.checks.check import Check, InputKind
from mlir_sched.runner.checks.inputs import make_inputs
from mlir_sched.runner.checks.numeric_checks import checks_for_model
from mlir_sched.runner.worker.comparison import compare
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.targets.target import LOCAL
from mlir_sched.tasks import EntryPoint, Model, extract
from mlir_sched.tasks.task import Task
from mlir_sched.tensors.element_types import Array

SAMPLE_S, PATIENCE_S, PREPARE_TIMEOUT_S = 0.02, 60.0, 300.0
"""Seconds of a sample, of sampling after which no further round starts, and that a process may take to begin."""


class WrongNumbersError(Exception):
    """A layout's result differs from that with channels last; the message says how."""


@dataclass(frozen=True)
class Setting:
    """How layouts are compared.

    Attributes:
        search: How programs are searched: in one space, from one seed; its trials are of a program with channels last.
        seed: Of the searches, and of the order of samples.
        cores: The cores on which all programs are timed.
        rounds: Samples of each program.
        widest: Channels of the largest block.
    """

    search: SearchSetting
    seed: int
    cores: tuple[int, ...]
    rounds: int
    widest: int


@dataclass(frozen=True)
class Tuned:
    """A convolution in one layout, tuned.

    Attributes:
        samples: Seconds per call, a sample per round.
        sketches: What the scripts of its dispatches are; empty where none is faster than IREE's own code.
        tried, failed: Candidates, and those that failed.
    """

    samples: Samples
    sketches: tuple[str, ...]
    tried: int
    failed: int


@dataclass(frozen=True)
class Found:
    """A convolution in all layouts, sampled in turns.

    Attributes:
        name: That of the convolution.
        forms: By layout.
    """

    name: str
    forms: Mapping[str, Tuned]

    @property
    def last(self) -> Tuned:
        """The faster one with channels last: with weights as they are, or packed."""
        return min((self.forms[name] for name in (LAST, PACKED) if name in self.forms), key=_median)

    @property
    def blocked(self) -> Tuned:
        """The one with blocked channels."""
        return self.forms[BLOCKED]


def _median(tuned: Tuned) -> float:
    return tuned.samples.interval.median


@dataclass(frozen=True)
class _Program:
    """A tuned program that can be loaded, with what a :class:`Tuned` says of it."""

    compiled: Compiled
    sketches: tuple[str, ...]
    tried: int
    failed: int


def measure(convolution: Convolution, setting: Setting, evaluator: Evaluator, folder: Path) -> Found:
    """Return what a convolution takes in every layout.

    Args:
        evaluator: Evaluates candidates under the flags of the target's tasks.
        folder: Gets programs, inputs and results.

    Raises:
        UserError, UntunedError, ModelCompileError: A program is not compiled, or does not run.
        PeerError: A tuned program does not run.
        WrongNumbersError: See there.
    """
    forms = forms_of(convolution, setting.widest)
    trials = trials_of(forms, setting.search.trials)
    programs = {
        name: _tuned(form, trials[name], setting, evaluator, folder / str(number))
        for number, (name, form) in enumerate(forms.items())
    }
    with ExitStack() as stack:
        processes = {name: stack.enter_context(PeerProcess(IREE_PEERS[IREE], setting.cores)) for name in forms}
        _prepare(forms, programs, processes, folder)
        taken = interleave(
            [TimedWay(IREE, 0, name) for name in forms],
            lambda way: processes[way.label].sample(way.way, SAMPLE_S),
            rounds=setting.rounds,
            patience_s=PATIENCE_S,
            rng=np.random.default_rng(setting.seed),
        )
    tuned = ((each.timed.label, each, programs[each.timed.label]) for each in taken)
    return Found(convolution.name, {name: Tuned(s, p.sketches, p.tried, p.failed) for name, s, p in tuned})


def trials_of(forms: Collection[str], trials: int) -> dict[str, int]:
    """Return the trials of each program, given those of one with channels last: as many with blocks as of all these."""
    return {name: trials * (len(forms) - 1) if name == BLOCKED else trials for name in forms}


def _tuned(form: Form, trials: int, setting: Setting, evaluator: Evaluator, folder: Path) -> _Program:
    """Tune a program of one layout, and compile it with the best scripts that are faster than IREE's own code."""
    folder.mkdir(parents=True)
    path, output, target = folder / "program.mlir", folder / "program.vmfb", setting.search.target
    path.write_text(form.text)
    model, (named,) = extract(path, target), setting.search.spaces
    tasks = [task for task in model.tasks if task.dispatch and named.space.sketches(task.dispatch, target)]
    found = search(tasks, named, setting.seed, replace(setting.search, trials=trials), evaluator)
    best = {task.key: record for task in tasks if (record := found.records.get(task.key)) and _gains(record)}
    gaining = [task for task in tasks if task.key in best]
    scripts = [_sequence(number, task, best[task.key], named, setting) for number, task in enumerate(gaining)]
    output.write_bytes(_with_scripts(path, model, scripts, folder / "library.mlir"))
    compiled = Compiled("", "", output, model.entries[0], (LOCAL.device(target.cores),))
    return _Program(compiled, tuple(script.trace.sketch for script in scripts), found.trials, found.failed)


def _gains(record: Record) -> bool:
    timing = record.outcome.valid
    return timing is not None and timing.ratio > 1.0


def _sequence(number: int, task: Task, record: Record, named: NamedSpace, setting: Setting) -> TunedSequence:
    assert task.dispatch is not None
    assert record.trace is not None
    space = DesignSpace(named.space, task.dispatch, setting.search.target)
    return TunedSequence(sequence_symbol(number, task.name), task.source, space, record.trace, dispatch=task.name)


def _with_scripts(path: Path, model: Model, scripts: list[TunedSequence], library: Path) -> bytes:
    """Return a compiled program, whose library is written to a file.

    Raises:
        ModelCompileError: It does not compile, or a script is not applied.
    """
    library.write_text(build_library(scripts))
    program = compile_showing(path, model.flags, library)
    if {each.sequence for each in program.scripts} != {script.symbol for script in scripts}:
        raise ModelCompileError(f"{path}: of {len(scripts)} scripts {len(program.scripts)} are applied")
    return program.vmfb


def _prepare(
    forms: Mapping[str, Form], programs: Mapping[str, _Program], processes: Mapping[str, PeerProcess], folder: Path
) -> None:
    """Load all programs, each in its process, and compare what they compute of the same numbers."""
    entry = programs[LAST].compiled.entry
    check = _check(entry)
    image, taps = make_inputs(entry.inputs, check)
    reference: Array | None = None
    for number, (name, form) in enumerate(forms.items()):
        paths = [folder / f"{number}-{operand}.npy" for operand in ("image", "taps")]
        for path, array in zip(paths, form.operands(image, taps), strict=True):
            np.save(path, array)
        request = {
            "ask": "prepare",
            "inputs": [*map(str, paths)],
            "output": str(folder / f"{number}-result"),
            "programs": [programs[name].compiled.to_json()],
        }
        reply = processes[name].ask(request, PREPARE_TIMEOUT_S)
        result = form.result(np.load(reply["ways"][0]["outputs"][0]))
        reference = result if reference is None else reference
        tolerance = check.tolerance_for(entry.outputs[0], reference)
        if (wrong := compare(reference, np.ascontiguousarray(result), entry.outputs[0], tolerance)) is not None:
            raise WrongNumbersError(f"{name}: {wrong}")


def _check(entry: EntryPoint) -> Check:
    """Return the check of a program on random numbers."""
    return next(check for check in checks_for_model(entry.outputs) if check.kind == InputKind.RANDOM)
