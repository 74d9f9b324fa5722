"""What measuring a candidate takes: milliseconds of the runner for each, for five kinds of dispatch.

Candidates drawn at random are compiled first, and measured in rounds as in a search: what is known of the task bounds
what the next round gets. ``tool_speed.py`` prints the figures and puts them into its table.
"""

import time
from collections.abc import Iterator

from benchmarks.tool.compiling import KINDS, drawn_candidates
from mlir_sched.compiler import CompilerPool
from mlir_sched.emission.finalists import FINALISTS
from mlir_sched.evaluation.compiled_code import CompiledCode
from mlir_sched.evaluation.evaluator import CompileAndRun
from mlir_sched.outcome import Outcome
from mlir_sched.runner import RunnerOptions
from mlir_sched.targets.target import Target

ROUND = 8
"""Candidates per round, as many as in a round of a search."""


def measured_candidates(target: Target, count: int = 16) -> Iterator[tuple[str, str]]:
    """Yield, for each kind, what a candidate takes in the runner, checks and samples together."""
    options = RunnerOptions.for_device(target.driver, threads=target.cores)
    for name in KINDS:
        task, scripts = drawn_candidates(name, target, count)
        code, known = CompiledCode(FINALISTS), dict[str, Outcome]()
        with CompilerPool(task.flags, chain_length=options.chain_length) as pool:
            list(code.of(pool, [(task, script) for script in (*scripts, None)]))
        with CompileAndRun(task.flags, options, workers=1, code=code) as evaluator:
            untuned = evaluator.untuned(task).timing
            assert untuned is not None
            start = time.perf_counter()
            for first in range(0, count, ROUND):
                found = [outcome for _, outcome in evaluator.evaluate(task, scripts[first : first + ROUND], known)]
                known |= {outcome.binary_hash: outcome for outcome in found if outcome.binary_hash}
            seconds = time.perf_counter() - start
        ratios = [outcome.valid.ratio for outcome in known.values() if outcome.valid is not None]
        yield (
            f"candidates measured in rounds of {ROUND}, {name}",
            f"{1e3 * seconds / len(known):.0f} ms each ({len(known)} of {count}, {len(ratios)} of them checked in "
            f"full; untuned {1e6 * untuned.median_s:.0f} us, fastest {max(ratios, default=0.0):.2f}x)",
        )
