"""Design spaces: what a list of transform modules spans for one dispatch and target."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from operator import itemgetter
from typing import TypeVar

import numpy as np

from mlir_sched.errors import IllegalTraceError, ScriptError
from mlir_sched.models import LoopGraph
from mlir_sched.payload import Dispatch
from mlir_sched.sampling import Value
from mlir_sched.space.features import COUNT, featurise
from mlir_sched.space.graphs import loop_graph
from mlir_sched.space.space import Space, module_errors
from mlir_sched.targets.target import Target
from mlir_sched.trace import OnIllegal, Recorder, Trace
from mlir_sched.transform_scripts.emitter import Emitter
from mlir_sched.transform_scripts.module import Sketch
from mlir_sched.transform_scripts.schedule import Schedule

SAMPLE_ATTEMPTS = 64
MOST_TEMPLATES = 8
"""Most templates of a design space that are candidates."""
KEPT = 4096
"""Maximum number of feature rows, of graphs, and of repaired traces that a design space remembers: sequences ask for
the features of traces that they just drew, and evolution makes the same child again and again. A trace takes 3 kB."""
T = TypeVar("T")


class DesignSpace:
    """What a space spans for one dispatch and target: traces to sample, repair, featurise and print.

    Satisfies ``mlir_sched.search.SearchSpace``.
    """

    def __init__(self, space: Space, dispatch: Dispatch, target: Target) -> None:
        self.dispatch = dispatch
        self.target = target
        found = space.sketches(dispatch, target)
        self._errors = {one.name: module_errors(one.name, type(one).__module__) for one in space.modules}
        self._sketches: dict[str, Sketch] = {sketch.name: sketch for sketch in found}
        self._rows: dict[str, np.ndarray] = {}
        self._graphs: dict[str, LoopGraph] = {}
        self._repairs: dict[str, Trace | IllegalTraceError] = {}

    @cached_property
    def sketches(self) -> tuple[str, ...]:
        """Names of the sketches, in the order of the modules; empty when nothing can be scheduled."""
        return tuple(self._sketches)

    def modules_of(self, sketch: str) -> tuple[str, ...]:
        """Return the names of the modules whose steps make up a sketch, in the order in which the steps run."""
        return tuple(dict.fromkeys(step.module for step in self._sketches[sketch].ordered_steps))

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

    def templates(self) -> tuple[Trace, ...]:
        """Return distinct legal traces that the modules guess, at most :data:`MOST_TEMPLATES`, the best guess first.

        Raises:
            UserError: A module that is not ours raised.
        """
        traces = dict[str, Trace]()
        for sketch, values in self.guesses():
            with suppress(IllegalTraceError):
                trace = self.completed(sketch, values)
                traces.setdefault(trace.key, trace)
        return tuple(traces.values())[:MOST_TEMPLATES]

    def guesses(self) -> list[tuple[str, Mapping[str, Value]]]:
        """Return the sketch and the values of every template of the modules, legal or not, the best guess first.

        Modules that schedule the same dispatch take turns, in their order.
        """
        order = {module: number for number, module in enumerate(self._errors)}
        found = list[tuple[int, int, str, Mapping[str, Value]]]()
        for sketch in self._sketches.values():
            module = sketch.steps[0].module
            with self._errors[module]:
                found += [(place, order[module], sketch.name, values) for place, values in sketch.templates()]
        return [(name, values) for _, _, name, values in sorted(found, key=itemgetter(0, 1))]

    def completed(self, sketch: str, values: Mapping[str, Value]) -> Trace:
        """Return the trace of a sketch with some values, repaired, and otherwise the likeliest ones.

        Raises:
            IllegalTraceError: A rule of the space is broken, or a value cannot be repaired.
        """
        return self._remembered(*self.run(sketch, Recorder(values, likeliest=True)))

    def repaired(self, trace: Trace, rng: np.random.Generator | None = None) -> Trace:
        """Return the trace with every decision that no longer fits repaired.

        Decisions that the trace lacks, or whose values compare with none that is legal, are drawn from ``rng``, by
        default from a generator seeded by the trace itself.

        Raises:
            IllegalTraceError: A rule of the space is broken.
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

    def legal(self, trace: Trace) -> Trace:
        """Return a trace with the same decisions, each with the distribution that this space draws it from.

        Raises:
            IllegalTraceError: A decision does not fit or a rule is broken.
        """
        return self._remembered(*self.run(trace.sketch, Recorder(trace.values, on_illegal=OnIllegal.REJECT)))

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

    def graphs(self, traces: Sequence[Trace]) -> list[LoopGraph]:
        """Return the graph of the loops of every trace."""
        found = []
        for trace in traces:
            if trace.key not in self._graphs:
                self._graphs = _halved(self._graphs)
                self._graphs[trace.key] = loop_graph(self.check(trace))
            found.append(self._graphs[trace.key])
        return found

    def script(self, trace: Trace, applied: str | None = None) -> str:
        """Return the transform script of a trace: canonical text, equal for equal traces.

        Args:
            applied: Value of the annotation that proves application; the trace's key by default.
        """
        from mlir_sched.transform_scripts.script.building import build_script

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
        from mlir_sched.transform_scripts.script.reading import parse_traces

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
            recorder: Draws the decisions, or takes given ones.
            emitter: Receives the transform ops; by default none are made.

        Raises:
            IllegalTraceError: A decision does not fit or a rule is broken.
            UserError: A module that is not ours raised.
        """
        sketch = self._sketches.get(name)
        if sketch is None:
            raise IllegalTraceError(f"the space has no sketch {name!r}; it has {', '.join(self._sketches) or 'none'}")
        schedule = Schedule(self.dispatch, self.target, recorder, emitter, sketch.passes)
        for step in sketch.ordered_steps:
            with self._errors[step.module]:
                step.run(schedule)
        return recorder.finish(name), schedule


def _halved(kept: dict[str, T]) -> dict[str, T]:
    """Return a cache, without its older half when it holds :data:`KEPT` entries."""
    return dict(list(kept.items())[KEPT // 2 :]) if len(kept) >= KEPT else kept
