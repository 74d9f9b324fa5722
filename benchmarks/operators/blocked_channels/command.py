"""What blocked channels are worth: convolutions of networks with channels last and blocked, tuned with equal trials.

``python -m benchmarks blocked_channels NETWORK.mlir ... [--block 16] [--trials 24] [--json FILE]``. The distinct
two-dimensional convolutions of the programs are written as programs of one op, with channels last (also with packed
weights, where ``packed_weights`` packs them) and with channels in blocks, as a layout that holds through the network
would have them: nothing is converted. As many candidates are tried with blocks as with channels last in both ways
together, from the same seed. All programs compute the same numbers, and are timed in turns. With ``--json`` an
interrupted run is resumed.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures.publishing import options_of, parsed
from benchmarks.kept import Kept
from benchmarks.operators.blocked_channels.convolutions import Convolution, convolutions_of
from benchmarks.operators.blocked_channels.forms import BYTES, LEAST_BLOCK
from benchmarks.operators.blocked_channels.measurement import Found, Setting, WrongNumbersError, measure
from benchmarks.operators.blocked_channels.tables import convolutions_table, networks_table
from benchmarks.peers.client import PeerError
from benchmarks.search.composition.search import Setting as SearchSetting
from benchmarks.search.composition.spaces import NamedSpace
from mlir_sched import TuneOptions
from mlir_sched.compiler import ModelCompileError
from mlir_sched.compiler.flags import task_flags
from mlir_sched.database import RecordStore
from mlir_sched.errors import MlirSchedError
from mlir_sched.evaluation.evaluator import CompileAndRun
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.runner import RunnerOptions, choose_cores
from mlir_sched.space.space import Space
from mlir_sched.targets import detect_target
from mlir_sched.targets.target import Target
from mlir_sched.text import say

KEPT = Kept("convolutions", list[Found], 2)


def main() -> int:
    """Compare the layouts; return 1 where a convolution of the networks could not be measured."""
    parser = _parser()
    arguments, publishing = parsed(parser)
    target = detect_target("llvm-cpu", arguments.threads)
    widest = arguments.block or max(LEAST_BLOCK, target.vector_elements(BYTES))
    if widest < LEAST_BLOCK or widest & (widest - 1):
        parser.error(f"--block {widest}: a block has a power of two of channels, at least {LEAST_BLOCK}")
    try:
        networks = [convolutions_of(path, target) for path in arguments.networks]
    except ModelCompileError as error:
        parser.error(str(error).splitlines()[0])
    distinct = list(dict.fromkeys(one for network in networks for one in network.counts))
    with temporary_folder() as folder, RecordStore.open(Path(folder) / "store") as store:
        setting = _setting(arguments, target, widest, store)
        found = _measured(distinct, setting, arguments.json, Path(folder))
    if not found:
        sys.exit("error: no convolution could be measured")
    publishing.show(convolutions_table(networks, found, setting, publishing), target)
    publishing.show(networks_table(networks, found, setting, publishing), target)
    return int(len(found) < len(distinct))


def _setting(arguments: argparse.Namespace, target: Target, widest: int, store: RecordStore) -> Setting:
    space, round_size = NamedSpace("default", Space.default(target)), TuneOptions().round_size
    search = SearchSetting(target, (space,), arguments.trials, 1, round_size, store)
    return Setting(search, arguments.seed, choose_cores(target.cores), arguments.rounds, widest)


def _measured(
    convolutions: Sequence[Convolution], setting: Setting, file: Path | None, folder: Path
) -> dict[str, Found]:
    """Return what could be measured, by name, and keep it in the file; what is there is not measured again."""
    target = setting.search.target
    asked: dict[str, object] = {
        "trials": setting.search.trials,
        "seed": setting.seed,
        "rounds": setting.rounds,
        "block": setting.widest,
    }
    asked |= {"processor": target.processor, "threads": target.cores}
    known = {one.name: one for one in KEPT.read(file, asked) or []}
    options = RunnerOptions.for_device(target.driver, threads=target.cores)
    with CompileAndRun(task_flags(target.flags), options) as evaluator:
        for number, one in enumerate(convolutions):
            if one.name in known:
                continue
            say(f"{one.name} ...")
            try:
                known[one.name] = measure(one, setting, evaluator, folder / str(number))
            except (MlirSchedError, PeerError, WrongNumbersError) as error:
                say(f"{one.name}: {error}")
                continue
            KEPT.write(file, list(known.values()), asked)
    return {one.name: known[one.name] for one in convolutions if one.name in known}


def _parser() -> argparse.ArgumentParser:
    parser = options_of(__doc__)
    parser.add_argument("networks", nargs="+", type=Path, help="programs that iree-compile reads")
    parser.add_argument("--block", type=int, help="channels of the largest block; by default a vector register")
    parser.add_argument("--trials", type=int, default=24, help="per program with channels last; as many with blocks")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20, help="samples per program")
    parser.add_argument("--json", type=Path, help="write the results there; convolutions there are not measured again")
    return parser
