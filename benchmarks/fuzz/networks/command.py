"""Rewrites random networks in every way that is offered, judged by NumPy: ``python -m benchmarks fuzz.networks``.

Networks whose seeds are in the file of judgements are not judged again, so that many can be done in several goes. When
all are judged, the smallest network of every kind of finding is made smaller, and kept beside the judgements. Ends with
exit code 1 where a plan computes wrong numbers although IREE's own code is right, or meets an internal error.
"""

import argparse
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue

from benchmarks.fuzz.networks.generator import RandomNetwork, random_network
from benchmarks.fuzz.networks.judgements import NetworkJudgement, PlanJudgement, smallest, summary
from benchmarks.fuzz.networks.laboratory import Laboratory
from benchmarks.fuzz.networks.reduction import reduced
from benchmarks.kept import judged_once
from mlir_sched.errors import MlirSchedError
from mlir_sched.program.plan import Plan
from mlir_sched.targets import detect_target
from mlir_sched.targets.llvm_cpu import available_cpus


def main() -> int:
    """Judge networks and print what became of them."""
    arguments = _parser().parse_args()
    file, target, free = arguments.judgements, detect_target("llvm-cpu", 1), SimpleQueue[Laboratory]()

    @contextmanager
    def laboratory() -> Iterator[Laboratory]:
        one = free.get()
        try:
            yield one
        finally:
            free.put(one)

    def judge(seed: int) -> NetworkJudgement:
        with laboratory() as judging:
            return judging.judge(random_network(seed), seed)

    def keep_small(found: tuple[int, PlanJudgement]) -> None:
        with laboratory() as reducing:
            keep(reducing, random_network(found[0]), *found, file.with_suffix(""), arguments.reductions)

    with ExitStack() as opened:
        for _ in range(arguments.jobs):
            free.put(opened.enter_context(Laboratory.open(target, flags=arguments.flags)))
        seeds = range(arguments.first, arguments.first + arguments.networks)
        found = judged_once(file, seeds, NetworkJudgement, judge, "networks", jobs=arguments.jobs)
        print("\n".join(summary(found)), flush=True)
        with ThreadPoolExecutor(arguments.jobs) as threads:
            list(threads.map(keep_small, smallest(found) if arguments.reductions else ()))
    return int(any(plan.fate.is_fault for each in found for plan in each.plans))


def keep(
    laboratory: Laboratory, network: RandomNetwork, seed: int, finding: PlanJudgement, folder: Path, tries: int
) -> None:
    """Write a small network for a finding of a kind that has no file in a folder yet.

    Args:
        network, seed: The network with the finding, and its seed.
        folder: The folder, which is made where it is needed.
        tries: How many smaller networks are tried, at most.
    """
    file = folder / f"{_name(finding)}.mlir"
    if not file.exists():
        small = _small(laboratory, network, finding, tries)
        folder.mkdir(exist_ok=True)
        file.write_text(f"// Seed {seed}, {finding.plan}: {finding.fate}: {finding.detail}\n{small.program.text}")


def _small(laboratory: Laboratory, network: RandomNetwork, finding: PlanJudgement, tries: int) -> RandomNetwork:
    """Return a network that is as small as a few tries make it, with the same kind of finding."""
    try:
        plan = laboratory.plans(network).get(finding.plan)
    except MlirSchedError:
        plan = None
    return network if plan is None else reduced(network, lambda each: _same(laboratory, each, plan, finding), tries)


def _same(laboratory: Laboratory, network: RandomNetwork, plan: Plan, finding: PlanJudgement) -> bool:
    """Say whether a network has the same kind of finding under a plan."""
    try:
        return laboratory.judge_plan(network, plan).kind == finding.kind
    except MlirSchedError:
        return False


def _name(finding: PlanJudgement) -> str:
    """Return the name of a kind of finding in a folder."""
    fate, rewrite, cause = finding.kind
    digest = sha256(cause.encode()).hexdigest()[:4] if cause else ""
    return re.sub(r"\W+", "-", " ".join(filter(None, (fate.lower(), rewrite, digest))))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks fuzz.networks", description=__doc__)
    parser.add_argument("--networks", type=int, default=20, help="how many networks")
    parser.add_argument("--first", type=int, default=0, help="the first one's seed")
    parser.add_argument("--flags", action="store_true", help="judge programs with IREE's own flags, too")
    parser.add_argument("--jobs", type=int, default=available_cpus(), help="how many networks at a time")
    parser.add_argument(
        "--reductions", type=int, default=60, help="smaller networks tried per kind of finding, at most; 0 keeps none"
    )
    parser.add_argument(
        "--judgements", type=Path, default=Path("networks.jsonl"), help="file that judgements are added to"
    )
    return parser
