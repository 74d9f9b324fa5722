"""Design spaces: an ordered list of transform modules, and what that list spans for one task and target."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib.metadata import entry_points
from typing import TypeVar

import numpy as np

from mlir_sched.errors import IllegalTraceError, MlirSchedError, ScriptError, UserError
from mlir_sched.payload import Dispatch
from mlir_sched.space.features import COUNT, featurise
from mlir_sched.targets.target import Target
from mlir_sched.trace import OnIllegal, Recorder, Trace
from mlir_sched.transform_scripts.emitter import Emitter
from mlir_sched.transform_scripts.module import Sketch, TransformModule
from mlir_sched.transform_scripts.schedule import Schedule

ENTRY_POINTS = "mlir_sched.transform_modules"
"""Entry-point group through which other distributions register transform modules (a class or a factory)."""
SAMPLE_ATTEMPTS = 64
KEPT = 20_000
"""Maximum number of feature rows (6 MB), and of repaired traces, that a design space remembers: sequences ask for the
features of traces that they just drew, and evolution makes the same child again and again."""
T = TypeVar("T")


class Space:
    """An ordered list of transform modules; immutable, so every change returns a new space.

    Modules are asked in order. A module that schedules a whole dispatch should stand before the modules that
    distribute and lower it; :meth:`insert` puts it there by default.
    """

    def __init__(self, modules: Sequence[TransformModule]) -> None:
        """Make a space of modules, in their order.

        Raises:
            UserError: Two modules have the same name.
        """
        names = [module.name for module in modules]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise UserError(f"two transform modules are named {doubled[0]!r}; give each a name of its own")
        self.modules = tuple(modules)

    @staticmethod
    def default(target: Target) -> Space:
        """Return the space for a target: registered modules first, then the backend's own.

        Raises:
            UserError: The backend has no modules, or a registered module cannot be loaded.
        """
        package = f"mlir_sched.transform_scripts.{target.name.replace('-', '_')}"
        try:
            backend = importlib.import_module(package)
        except ModuleNotFoundError as error:
            raise UserError(f"there are no transform modules for the target {target.name!r}") from error
        return Space([*registered_modules(target), *backend.default_modules()])

    def for_target(self, target: Target) -> Space:
        """Return this space if every module of it can be used for a target.

        Raises:
            UserError: A module cannot be used; the message names its stage.
        """
        for module in self.modules:
            if not module.is_for(target):
                raise UserError(
                    f"the transform module {module.name!r} cannot be used for the target {target.name}: its stage "
                    f"{module.stage.name.lower()!r} is for {', '.join(module.backends)} only"
                )
        return self

    def insert(self, module: TransformModule, *, before: str | None = None, after: str | None = None) -> Space:
        """Return a space with one more module, by default at the front.

        Args:
            module: The module to insert.
            before, after: Name of the module that it is put before or after; one of the two at most.

        Raises:
            UserError: The space lacks the named module, has one of the same name, or both positions are given.
        """
        if before is not None and after is not None:
            raise UserError("give either before or after, not both")
        position = 0
        if before is not None:
            position = self._position(before)
        elif after is not None:
            position = self._position(after) + 1
        return Space([*self.modules[:position], module, *self.modules[position:]])

    def replace(self, name: str, module: TransformModule) -> Space:
        """Return a space with another module in the place of the named one.

        Raises:
            UserError: The space lacks the named module, or another one has the new module's name.
        """
        position = self._position(name)
        return Space([*self.modules[:position], module, *self.modules[position + 1 :]])

    def remove(self, name: str) -> Space:
        """Return a space without the named module.

        Raises:
            UserError: The space lacks the named module.
        """
        position = self._position(name)
        return Space([*self.modules[:position], *self.modules[position + 1 :]])

    def sketches(self, dispatch: Dispatch, target: Target) -> tuple[Sketch, ...]:
        """Return the complete sketches that the modules make for a dispatch; empty when no module can schedule it.

        Raises:
            UserError: A module that is not ours raised.
        """
        sketches = [Sketch()]
        for module in self.modules:
            if not module.is_for(target):
                continue
            with _blame(module.name, type(module).__module__):
                for op in dispatch.ops:
                    sketches = [new for old in sketches for new in module.extend(old, op, dispatch, target)]
        return tuple(sketch for sketch in sketches if sketch.complete)

    def _position(self, name: str) -> int:
        names = [module.name for module in self.modules]
        if name not in names:
            raise UserError(f"the space has no transform module {name!r}; it has {', '.join(names)}")
        return names.index(name)


def registered_modules(target: Target) -> Iterator[TransformModule]:
    """Yield the modules that installed distributions register for a target, ordered by entry-point name.

    Raises:
        UserError: A module cannot be loaded or is not a transform module.
    """
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name):
        try:
            module = entry.load()()
        except Exception as error:
            raise UserError(
                f"the transform module {entry.name!r} ({entry.value}) cannot be loaded: {error!r}; "
                "mend or uninstall the distribution that registers it"
            ) from error
        if not isinstance(module, TransformModule):
            raise UserError(f"{entry.value}, registered as {entry.name!r}, does not make a TransformModule")
        if module.is_for(target):
            yield module


class DesignSpace:
    """What a space spans for one dispatch and target: traces to sample, repair, featurise and print.

    Satisfies ``mlir_sched.search.SearchSpace``.
    """

    def __init__(self, space: Space, dispatch: Dispatch, target: Target) -> None:
        self.dispatch = dispatch
        self.target = target
        found = space.sketches(dispatch, target)
        self._origin = {module.name: type(module).__module__ for module in space.modules}
        self._sketches: dict[str, Sketch] = {sketch.name: sketch for sketch in found}
        self._rows: dict[str, np.ndarray] = {}
        self._repairs: dict[str, Trace | IllegalTraceError] = {}

    @cached_property
    def sketches(self) -> tuple[str, ...]:
        """Names of the sketches, in the order of the modules; empty when nothing can be scheduled."""
        return tuple(self._sketches)

    def modules_of(self, sketch: str) -> tuple[str, ...]:
        """Return the names of the modules whose steps make up a sketch, in the order in which the steps run."""
        return tuple(dict.fromkeys(step.module for step in self._sketches[sketch].ordered_steps()))

    def sample(self, rng: np.random.Generator, sketch: str | None = None) -> Trace:
        """Draw a legal trace of the named sketch, by default of one drawn uniformly.

        Raises:
            IllegalTraceError: None of 64 attempts was legal; the message is the last rule broken.
            UserError: A module that is not ours raised.
        """
        if sketch is None:
            sketch = self.sketches[int(rng.integers(len(self.sketches)))]
        for _ in range(SAMPLE_ATTEMPTS - 1):
            try:
                return self.attempt(rng, sketch)
            except IllegalTraceError:
                continue
        return self.attempt(rng, sketch)

    def attempt(self, rng: np.random.Generator, sketch: str) -> Trace:
        """Draw a trace in a single attempt; serves to measure the share of legal draws.

        Raises:
            IllegalTraceError: The draw broke a rule.
        """
        return self._remembered(*self.run(sketch, Recorder(rng=rng)))

    def repaired(self, trace: Trace, rng: np.random.Generator | None = None) -> Trace:
        """Return the trace with every decision that no longer fits repaired.

        Decisions that the trace lacks are drawn from ``rng``, by default from a generator seeded by the trace itself.

        Raises:
            IllegalTraceError: A rule of the space is broken, or a decision cannot be repaired.
        """
        if rng is not None:
            return self._run_again(trace, rng)
        if trace.key not in self._repairs:
            self._repairs = _halved(self._repairs)
            try:
                self._repairs[trace.key] = self._run_again(trace, np.random.default_rng(int(trace.key, 16)))
            except IllegalTraceError as error:
                self._repairs[trace.key] = error
        found = self._repairs[trace.key]
        if isinstance(found, IllegalTraceError):
            raise found.with_traceback(None)
        return found

    def _run_again(self, trace: Trace, rng: np.random.Generator) -> Trace:
        return self._remembered(*self.run(trace.sketch, Recorder(trace.values, rng)))

    def check(self, trace: Trace) -> Schedule:
        """Run the schedule program with the very decisions of a trace and return the finished schedule.

        Raises:
            IllegalTraceError: A decision does not fit or a rule is broken; the message says which.
        """
        return self.run(trace.sketch, Recorder(trace.values, on_illegal=OnIllegal.REJECT))[1]

    def features(self, traces: Sequence[Trace]) -> np.ndarray:
        """Return the features of traces, float32 [len(traces), features.COUNT]."""
        if not traces:
            return np.empty((0, COUNT), dtype=np.float32)
        rows = []
        for trace in traces:
            if trace.key not in self._rows:
                self._remembered(trace, self.check(trace))
            rows.append(self._rows[trace.key])
        return np.stack(rows)

    def script(self, trace: Trace, applied: str | None = None) -> str:
        """Return the transform script of a trace: canonical text, equal for equal traces.

        Args:
            trace: A legal trace of this space.
            applied: Value of the annotation that proves application; the trace's key by default.
        """
        from mlir_sched.transform_scripts.script import build_script

        return build_script(trace.sketch, lambda emitter: self.emit(trace, emitter), applied or trace.key)

    def emit(self, trace: Trace, emitter: Emitter) -> None:
        """Emit the body of a trace's sequence."""
        self.run(trace.sketch, Recorder(trace.values, on_illegal=OnIllegal.REJECT), emitter)

    def trace_of(self, script: str) -> Trace:
        """Return the trace of a stand-alone script, proven legal in this space.

        A decision edited by hand is honoured when the space allows it: :meth:`script` then prints the script that
        follows from it. Other edits do not show in the trace (``script_state.judge`` notices them).

        Raises:
            ScriptError: The script does not parse, or a decision is incomplete or contradicts itself.
            IllegalTraceError: An edited decision is refused; the message names the rule.
        """
        from mlir_sched.attributes import SEQUENCE
        from mlir_sched.transform_scripts.script_reading import parse_traces

        traces = parse_traces(script)
        if SEQUENCE not in traces:
            raise ScriptError(f"the script has no sequence @{SEQUENCE} with a sketch attribute")
        self.check(traces[SEQUENCE])
        return traces[SEQUENCE]

    def _remembered(self, trace: Trace, schedule: Schedule) -> Trace:
        """Keep the features of a finished schedule and return its trace."""
        self._rows = _halved(self._rows)
        self._rows[trace.key] = featurise(schedule, trace.sketch)
        return trace

    def run(self, name: str, recorder: Recorder, emitter: Emitter | None = None) -> tuple[Trace, Schedule]:
        """Run the program of a sketch and return its trace and the finished schedule.

        Args:
            name: The sketch.
            recorder: Draws the decisions, or takes given ones.
            emitter: Receives the transform ops; by default none are made.

        Raises:
            IllegalTraceError: A decision does not fit or a rule is broken.
            UserError: A module that is not ours raised.
        """
        sketch = self._sketches.get(name)
        if sketch is None:
            raise IllegalTraceError(f"the space has no sketch {name!r}; it has {', '.join(self._sketches) or 'none'}")
        schedule = Schedule(self.dispatch, self.target, recorder, emitter)
        for step in sketch.ordered_steps():
            with _blame(step.module, self._origin[step.module]):
                step.run(schedule)
        return recorder.finish(name), schedule


def _halved(kept: dict[str, T]) -> dict[str, T]:
    """Return a cache, without its older half when it holds :data:`KEPT` entries."""
    return dict(list(kept.items())[KEPT // 2 :]) if len(kept) >= KEPT else kept


class _blame:  # noqa: N801 - reads as a statement
    """Turn the exception of a module that is not ours into a user error that names the module and the line."""

    def __init__(self, module: str, python_module: str) -> None:
        self._module, self._ours = module, python_module.startswith("mlir_sched.")

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if self._ours or not isinstance(error, Exception) or isinstance(error, MlirSchedError):
            return
        frame = traceback.extract_tb(error.__traceback__)[-1]
        raise UserError(
            f"the transform module {self._module!r} raised {type(error).__name__}: {error} "
            f"({frame.filename}:{frame.lineno}); mend it or leave it out"
        ) from error
