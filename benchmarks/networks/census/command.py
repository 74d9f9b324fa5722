"""Says what the time of networks goes into: ``python -m benchmarks networks.census [NETWORK ...] [--minutes 2]``.

For each network, compiled as it is, and rewritten as a search begins with it: the share of the time in dispatches that
can have scripts (goal: 90 %), and in dispatches that only copy, transpose, fill or gather (goal: at most 5 %). Where a
network misses a goal, the dispatches are named, each with the reason. That takes about a minute per network; what is in
``--json`` is not done again. With ``--minutes`` networks are tuned, too; with ``--engines`` they are compared with
engines in turns. Networks are exported in the environment of the engines, unless they are in ``--keep``.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.figures.publishing import options_of, parsed
from benchmarks.kept import converter
from benchmarks.networks.census.counting import NetworkCensus
from benchmarks.networks.census.network import take_census
from benchmarks.networks.census.results import named, results_table, summary
from benchmarks.networks.comparison import Setting, WrongResultError
from benchmarks.networks.families import FAMILIES
from benchmarks.networks.networks import NETWORKS
from benchmarks.peers.client import PeerError
from benchmarks.peers.make_engines import ENGINES, require_engines
from mlir_sched.errors import MlirSchedError, UserError
from mlir_sched.runner.cores import choose_cores
from mlir_sched.targets import detect_target
from mlir_sched.tuned_folder.replaced_file import replace_file

_VERSION = 1
ROUNDS, SAMPLE_S = 12, 2.0
"""Samples of each way, and their seconds, in a comparison with engines."""


def main() -> int:
    """Take the censuses and print them; return 1 where a network has none, or met an internal error."""
    parser = _parser()
    arguments, publishing = parsed(parser)
    names = arguments.networks or [*NETWORKS, *FAMILIES]
    _require_networks(parser, names, arguments)
    asked = {name: getattr(arguments, name) for name in ("threads", "minutes", "seed", "engines")}
    try:
        target, cores = detect_target("llvm-cpu", arguments.threads), choose_cores(arguments.threads)
        known = kept_censuses(arguments.json, asked) if arguments.json else {}
    except UserError as error:
        parser.error(str(error))
    minutes, folder = arguments.minutes or 0.0, arguments.keep
    setting = Setting(target, cores, ENGINES, (), minutes, arguments.seed, ROUNDS, SAMPLE_S, folder)
    found = _censuses(names, known, setting, arguments.json, asked)
    done = [found[name] for name in names if name in found]
    if done:
        table = results_table(
            done, publishing, threads=arguments.threads, seed=arguments.seed, minutes=arguments.minutes
        )
        publishing.add(table, target)
    return int(len(done) < len(names) or any(each.internal_errors for each in done))


def _censuses(
    names: Sequence[str], known: dict[str, NetworkCensus], setting: Setting, file: Path | None, asked: dict[str, Any]
) -> dict[str, NetworkCensus]:
    """Return the known censuses with those of the other networks, and print them; each is kept at once."""
    wanted = {"tuned": asked["minutes"] is not None, "compared": asked["engines"]}
    for name in names:
        if name not in known:
            try:
                known[name] = take_census(name, setting, **wanted)
            except (MlirSchedError, PeerError, WrongResultError) as error:
                print(f"{name}: {error}", flush=True)
                continue
            if file is not None:
                keep_censuses(file, asked, known)
        print("\n  ".join((summary(known[name]), *named(known[name]))), flush=True)
    return known


def kept_censuses(path: Path, setting: Mapping[str, Any]) -> dict[str, NetworkCensus]:
    """Return the censuses in a file by the names of their networks; none where there is no file.

    Raises:
        UserError: The file is not one of censuses, or one with another setting.
    """
    try:
        data = json.loads(path.read_text()) if path.exists() else None
        if data is None:
            return {}
        if data["version"] == _VERSION and data["setting"] == dict(setting):
            found = converter().structure(data["networks"], list[NetworkCensus])
            return {each.network: each for each in found}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: not a file of censuses ({error}); name another file") from error
    raise UserError(f"{path}: it holds censuses with {data['setting']}, not with {dict(setting)}; name another file")


def keep_censuses(path: Path, setting: Mapping[str, Any], found: Mapping[str, NetworkCensus]) -> None:
    """Write censuses into a file, whole or not at all."""
    data = {"version": _VERSION, "setting": dict(setting), "networks": list(found.values())}
    replace_file(path, json.dumps(data, default=asdict, indent=1).encode())


def _require_networks(parser: argparse.ArgumentParser, names: Sequence[str], arguments: argparse.Namespace) -> None:
    """End the program where a network is not known, or the engines are needed and missing."""
    missing = [name for name in names if not (arguments.keep / name / "model.mlir").exists()]
    if unknown := sorted({*missing} - {*NETWORKS, *FAMILIES}):
        parser.error(f"no such network: {', '.join(unknown)}; networks are {', '.join((*NETWORKS, *FAMILIES))}")
    if arguments.engines and arguments.minutes is None:
        parser.error("--engines compares tuned networks: say how long they are tuned with --minutes")
    if missing or arguments.engines:
        require_engines()


def _parser() -> argparse.ArgumentParser:
    parser = options_of(__doc__)
    parser.add_argument("networks", nargs="*", help="by default all; or folders with an export in --keep")
    parser.add_argument("--minutes", type=float, help="tune each network, so long")
    parser.add_argument("--engines", action="store_true", help="compare the tuned networks with engines in turns")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0, help="of the search")
    parser.add_argument("--keep", type=Path, default=Path("networks"), help="folder for what is exported and tuned")
    parser.add_argument("--json", type=Path, help="keep the censuses there, for a run that goes on")
    return parser
