"""Judges models on measured candidates, and ways to search: ``strategies ranking|live|networks|acquisition``.

``python -m benchmarks pages`` puts the tables into docs/search-strategies.md. Options of publishing stand before the
name of what is done:

    python -m benchmarks strategies --results docs/results/MACHINE.json --against "One seed" ranking
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.corpus.sets import COLLECTED
from benchmarks.figures.publishing import Publishing, options_of, parsed
from benchmarks.figures.result_table import ResultTable
from benchmarks.folders import ROOT
from benchmarks.kept import converter
from benchmarks.strategies import acquisition as replayed
from benchmarks.strategies import live as searches
from benchmarks.strategies import matches as played
from benchmarks.strategies import networks as whole_runs
from benchmarks.strategies import ranking as ranked_pools
from benchmarks.strategies import reach as reached
from benchmarks.strategies import selection
from benchmarks.strategies.arms import ARMS
from benchmarks.strategies.model_gates import MODEL_GATES, TREES, AgainstTrees, speed_of
from benchmarks.strategies.pools import Sources, pools_in
from mlir_sched.corpus.files import SHIPPED, SUFFIX, files_in, read_task
from mlir_sched.errors import UserError
from mlir_sched.runner.cores import choose_cores
from mlir_sched.targets import detect_target
from mlir_sched.targets.target import Target
from mlir_sched.text import say
from mlir_sched.tuning.search_method import COST_MODELS

KEPT = ROOT / "benchmarks" / ".strategies"
"""Folder of what is measured: the store of the searches, and what was tuned."""


@dataclass(frozen=True)
class Answer:
    """What a command found: its tables, and what they are made from."""

    tables: Sequence[ResultTable]
    found: Iterable[Any]


def main() -> None:
    """Do what the command says."""
    arguments, publishing = parsed(_parser())
    answer = COMMANDS[arguments.verb](arguments, publishing)
    for table in answer.tables:
        publishing.show(table)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(each) for each in answer.found], indent=1) + "\n")


def ranking(arguments: argparse.Namespace, publishing: Publishing) -> Answer:
    """Rank pools, by trees as well where another model is asked for, which is compared with them.

    What it takes goes to the standard error, as all else is the same in every process but how long another model takes.

    Raises:
        UserError: There are no pools, or none with as many random draws, or there is no such model.
    """
    make, start = COST_MODELS.named(arguments.model), time.perf_counter()
    kinds = [Sources[name.upper()] for name in arguments.taught_by]
    pools = pools_in(arguments.folders)
    rows, featurised_s = sum(len(pool.seconds) for pool in pools), time.perf_counter() - start
    if not (found := list(ranked_pools.ranked(pools, make, arguments.own, arguments.rows, kinds))):
        fewest = min(arguments.own, default=0) + max(ranked_pools.FAVOURITES)
        raise UserError(f"no pool has {fewest} random draws")
    fits = [each for each in found if each.sources != ranked_pools.ORDER]
    print(
        f"{rows} rows read and featurised in {featurised_s:.1f} s; {len(fits)} fits in "
        f"{sum(each.fit_s for each in fits):.1f} s, predictions in {sum(each.predict_s for each in fits):.2f} s; "
        f"all in {time.perf_counter() - start:.1f} s",
        file=sys.stderr,
    )
    if arguments.model == TREES:
        believed = reached.beliefs(pools)
        tables = [ranked_pools.results_table(found, arguments.model, publishing)]
        if believed:
            tables.append(reached.results_table(believed, publishing))
        return Answer(tables, [*found, *believed])
    trees = list(ranked_pools.ranked(pools, COST_MODELS.named(TREES), arguments.own, arguments.rows, kinds))
    against, gate = AgainstTrees(found, trees, speed_of(pools, make)), MODEL_GATES.get(arguments.model)
    columns, notes = against.columns(gate), tuple(against.notes(gate))
    return Answer([ranked_pools.results_table(found, arguments.model, publishing, columns, notes)], found)


def live(arguments: argparse.Namespace, publishing: Publishing) -> Answer:
    """Let arms search; a line per match says how it ended.

    Raises:
        UserError: Options do not fit, a file is damaged, or nothing is known on this machine.
    """
    if len(set(arguments.arms)) < len(arguments.arms):
        raise UserError("an arm is named twice")
    if min(arguments.tasks, arguments.seeds, arguments.round_size) < 1 or arguments.trials < min(played.TIMED):
        raise UserError(f"at least a task, a seed, a candidate of a round and {min(played.TIMED)} trials are needed")
    whole = _networks(arguments.networks)
    target = detect_target("llvm-cpu", 1)
    files, words = _corpus(arguments.corpus, target)
    numbers = arguments.tasks, arguments.trials, arguments.seeds, arguments.round_size
    setting = played.Setting(target, tuple(arguments.arms), *numbers, files, arguments.keep)
    found = list[played.Match]()
    for match in played.matches(setting):
        found.append(match)
        say(searches.lines_of(match))
    return Answer([searches.results_table(found, whole, words, publishing)], found)


def networks(arguments: argparse.Namespace, publishing: Publishing) -> Answer:
    """Tune networks with two sets of options, and compare the programs; a line per pair."""
    target = detect_target("llvm-cpu", arguments.threads)
    options = {whole_runs.A: arguments.a, whole_runs.B: arguments.b}
    measuring = arguments.minutes, arguments.rounds, arguments.sample_s
    setting = whole_runs.Setting(
        target, choose_cores(target.cores), arguments.arm, options, *measuring, arguments.keep / "networks"
    )
    found = list[whole_runs.NetworkPair]()
    for pair in whole_runs.pairs_of(arguments.folders, arguments.seeds, setting):
        found.append(pair)
        say(f"{pair.network}, seed {pair.seed}: B over A {pair.ratio}")
    return Answer([whole_runs.results_table(found, setting, publishing)], found)


def acquisition(arguments: argparse.Namespace, publishing: Publishing) -> Answer:
    """Search tables in several ways, and rank pools by models that parts of other pools taught.

    Raises:
        UserError: Options do not fit, a table or pool is damaged, or there is none.
    """
    if min(arguments.seeds, arguments.round_size) < 1 or arguments.trials < arguments.round_size:
        raise UserError("at least a seed, a candidate of a round and a round of trials are needed")
    numbers = arguments.seeds, arguments.trials, arguments.round_size, arguments.within
    setting, keep = replayed.Setting(*numbers), arguments.keep / "acquisition"
    keep.mkdir(parents=True, exist_ok=True)
    ways = list(dict.fromkeys([replayed.TODAY, *arguments.ways]))
    tables = [path for folder in arguments.folders for path in files_in(folder)]
    if not tables:
        raise UserError("there are no tables: python -m benchmarks corpus collect complete")
    searched = list(replayed.searches(tables, ways, setting, keep))
    pools = pools_in(arguments.pools)
    if not (ranked := list(selection.ranked(pools, arguments.draws, keep))):
        raise UserError("no pool has other shapes of its family: python -m benchmarks corpus collect pools")
    shown = [
        replayed.results_table(searched, setting, publishing),
        selection.results_table(ranked, arguments.draws, publishing),
    ]
    return Answer(shown, [*searched, *ranked])


COMMANDS: Mapping[str, Callable[[argparse.Namespace, Publishing], Answer]] = {
    "ranking": ranking,
    "live": live,
    "networks": networks,
    "acquisition": acquisition,
}


def _corpus(folders: Sequence[Path], target: Target) -> tuple[tuple[Path, ...], str]:
    """Return the files of the corpus, by default the pools of this machine, and what they are."""
    if folders:
        files = tuple(path for folder in folders for path in files_in(folder))
        return files, f"{len(files)} tasks of {', '.join(folder.name for folder in folders)}"
    shipped = sorted(SHIPPED.glob(f"*/pools/*{SUFFIX}"))
    files = tuple(path for path in shipped if read_task(path).target.machine == target.machine)
    if not files:
        raise UserError("nothing is known on this machine: python -m benchmarks corpus collect pools, or --corpus")
    return files, f"{len(files)} tasks of this machine's pools"


def _networks(files: Sequence[Path]) -> searches.Networks:
    """Return the intervals of networks by arm, from what ``networks --json`` wrote."""
    pairs = [pair for path in files for pair in _pairs_in(path)]
    by_arm = {arm: [pair for pair in pairs if pair.arm == arm] for arm in dict.fromkeys(pair.arm for pair in pairs)}
    return {
        arm: [whole_runs.interval_of(own)[1:] for own in whole_runs.by_network(found).values()]
        for arm, found in by_arm.items()
    }


def _pairs_in(path: Path) -> list[whole_runs.NetworkPair]:
    try:
        return converter().structure(json.loads(path.read_text()), list[whole_runs.NetworkPair])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is not what `strategies networks --json` wrote: {error!r}") from error


def _parser() -> argparse.ArgumentParser:
    layout = argparse.RawDescriptionHelpFormatter
    parser = options_of(__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)

    def verb(name: str, what: str, description: str | None) -> argparse.ArgumentParser:
        added = verbs.add_parser(name, help=what, description=description, formatter_class=layout)
        added.add_argument("--json", type=Path, help="write what the table is made from there")
        return added

    known = (*COST_MODELS.built_in, *COST_MODELS.with_extras)
    one = verb("ranking", "rank measured candidates", ranked_pools.__doc__)
    one.add_argument("folders", nargs="*", type=Path, help="folders of measured candidates; by default the pools")
    one.add_argument("--model", default="xgboost", help=f"cost model: {', '.join(known)} or registered")
    kinds = [kind.name.lower() for kind in Sources]
    one.add_argument("--taught-by", nargs="+", choices=kinds, default=kinds, help=f"what teaches: {', '.join(kinds)}")
    one.add_argument("--own", nargs="*", type=int, default=[0, 16, 32], help="numbers of own rows")
    one.add_argument("--rows", type=int, default=600, help="most rows of others that a model learns from")
    arms = "\n".join(f"  {name:10} {arm.what}" for name, arm in ARMS.items())
    one = verb("live", "compare arms in real searches", f"{searches.__doc__}\nThe arms:\n{arms}")
    one.add_argument("arms", nargs="+", choices=ARMS, metavar="ARM", help="others are compared with the first")
    one.add_argument("--tasks", type=int, default=8, help=f"how many of {len(played.TASKS)}")
    one.add_argument("--trials", type=int, default=24, help="candidates of a search")
    one.add_argument("--seeds", type=int, default=3)
    one.add_argument("--round-size", type=int, default=8)
    one.add_argument("--corpus", nargs="+", type=Path, default=(), help="folders; by default this machine's pools")
    one.add_argument("--networks", nargs="+", type=Path, default=(), help="what `networks --json` wrote")
    one.add_argument("--keep", type=Path, default=KEPT, help="folder of what is measured")
    one = verb("acquisition", "compare what candidates are scored with", replayed.__doc__)
    complete = sorted(COLLECTED.glob("*/complete"))
    one.add_argument("folders", nargs="*", type=Path, default=complete, help="folders of tables; by default all")
    ways = ", ".join(replayed.WAYS)
    one.add_argument("--ways", nargs="*", choices=replayed.WAYS, default=list(replayed.WAYS), help=ways, metavar="WAY")
    one.add_argument("--seeds", type=int, default=10, help="searches of a table in each way")
    one.add_argument("--trials", type=int, default=128, help="candidates of a search")
    one.add_argument("--round-size", type=int, default=16)
    one.add_argument("--within", type=float, default=0.02, help="how near the best counts as found")
    one.add_argument("--pools", nargs="*", type=Path, default=(), help="folders of pools; by default those shipped")
    one.add_argument("--draws", type=int, default=3, help="how often the random half of what teaches is drawn")
    one.add_argument("--keep", type=Path, default=KEPT, help="folder of what is searched")
    one = verb("networks", "compare options of whole runs", whole_runs.__doc__)
    one.add_argument("folders", nargs="+", type=Path, help="exported networks")
    one.add_argument("--a", default="", help="options of mlir-sched tune: what B is compared with")
    one.add_argument("--b", default="", help="options of mlir-sched tune")
    one.add_argument("--arm", choices=ARMS, required=True, help="what B is")
    one.add_argument("--minutes", type=float, default=5.0)
    one.add_argument("--seeds", type=int, default=3)
    one.add_argument("--threads", type=int, default=1)
    one.add_argument("--rounds", type=int, default=12, help="samples per program")
    one.add_argument("--sample-s", type=float, default=2.0, help="seconds of a sample")
    one.add_argument("--keep", type=Path, default=KEPT, help="folder of what is tuned")
    return parser
