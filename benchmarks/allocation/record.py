"""Records a network for the replay of rules about time: ``python -m benchmarks allocation.record NAME MODEL``.

Makes every plan that the pipeline can make, and searches each of their tasks to ``--candidates`` or to its end. A
recording that was stopped, by Ctrl-C or ``--minutes``, goes on where it was; its files are in ``--folder``. Nothing
else should run meanwhile.
"""

import argparse
import math
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.allocation.courses import rounded
from benchmarks.allocation.recorded import RUNS, RecordedRun, write_run
from benchmarks.allocation.recording import Recording
from benchmarks.figures.publishing import this_machine
from mlir_sched import TuneOptions, __version__
from mlir_sched.database import RecordStore
from mlir_sched.evaluation.evaluator import Evaluators
from mlir_sched.meter import MeasuredOnDevice
from mlir_sched.preflight import require_what_is_needed
from mlir_sched.tensors.parameters import parameter_files


def main() -> None:
    """Record the network that the command names."""
    arguments = _parser().parse_args()
    run = record(arguments)
    if run is None:
        print(f"{arguments.name}: not at its end yet; the same command goes on")
        sys.exit(3)
    file = arguments.output or RUNS / arguments.machine / f"{arguments.name}-{run.threads}.json.gz"
    write_run(run, file)
    tried = sum(len(task.candidates) for task in run.tasks)
    print(f"{arguments.name}: {len(run.plans)} plans, {len(run.tasks)} tasks, {tried} candidates: {file}")


def record(arguments: argparse.Namespace) -> RecordedRun | None:
    """Return the recorded run; None where no time was left for its end."""
    options, start = TuneOptions(threads=arguments.threads), time.monotonic()
    meter = MeasuredOnDevice.of(arguments.model, options)
    weights = parameter_files(arguments.parameters)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    store_path = arguments.folder / f"{arguments.name}-{meter.target.cores}.sqlite"
    end = start + 60 * arguments.minutes
    with RecordStore.open(store_path) as store, meter.workers, Evaluators(meter.evaluator) as evaluators:
        recording = Recording(arguments.model, weights, store, meter, arguments.candidates, end)
        require_what_is_needed(arguments.model, None, store, options)
        started_s = time.monotonic() - start
        recording.make_plans(evaluators)
        if not recording.search(evaluators):
            return None
        ended = recording.finish()
        return RecordedRun(
            arguments.name,
            arguments.family,
            this_machine(meter.target),
            datetime.now(UTC).date().isoformat(),
            {"mlir-sched": __version__, "iree-compiler": meter.target.compiler},
            meter.target.cores,
            rounded(started_s + recording.begin_s),
            tuple(recording.plans.values()),
            recording.recorded_tasks(),
            {site.name: (type(site.kind).__name__, site.shape) for site in recording.sites},
            recording.round_s(),
            ended,
            arguments.candidates,
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks allocation.record", description=__doc__)
    parser.add_argument("name", help="name of the network")
    parser.add_argument("model", type=Path, help="its program")
    parser.add_argument("--family", required=True, help="what kind of network it is, such as 'convolutional'")
    parser.add_argument("--machine", required=True, help="name of this machine's folder, such as 'emerald-rapids'")
    parser.add_argument("--parameters", action="append", default=[], metavar="SCOPE=FILE", help="its weights")
    parser.add_argument("--threads", type=int, default=1, help="threads that its programs run on")
    parser.add_argument("--candidates", type=int, default=64, help="candidates after which a task's course is cut")
    parser.add_argument("--minutes", type=float, default=math.inf, help="when to stop, in whole rounds")
    parser.add_argument("--folder", type=Path, default=Path("recordings"), help="where unfinished recordings are kept")
    parser.add_argument("--output", type=Path, help="file to write, by default among the benchmarks' data")
    return parser
