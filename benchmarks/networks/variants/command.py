"""Measures all variants of small networks, and judges their prediction: ``networks.variants collect`` or ``judge``.

``collect`` exports twelve small networks on inputs of three sizes, in the environment of the engines unless they are in
``--keep``, and compiles and times every variant. Each result is kept at once: a collection that was stopped, by Ctrl-C,
``--minutes`` or kill -9, goes on with the same command. It takes about a minute per network and size, and wants the
machine alone. ``judge`` predicts the variants of each network from the other networks.
"""

import argparse
import math
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from benchmarks.figures.publishing import Publishing, options_of, parsed
from benchmarks.folders import DATA, ROOT
from benchmarks.kept import Kept
from benchmarks.networks.comparison import export
from benchmarks.networks.sizes import PARTS, SHORTER
from benchmarks.networks.variants.judging import judged, plans_on, results_table
from benchmarks.networks.variants.measuring import MeasuredNetwork, measured
from benchmarks.peers.client import PeerError
from benchmarks.peers.make_engines import ENGINES
from mlir_sched.errors import MlirSchedError, UserError
from mlir_sched.targets import detect_target
from mlir_sched.targets.target import Target
from mlir_sched.text import say, seconds

KEPT = Kept("networks", list[MeasuredNetwork], 1)
FOLDER = DATA / "variants"
"""Folder of what is measured, a file per machine and number of threads."""


def main() -> int:
    """Do what the command says; 3 is the exit code of a collection that is not at its end, 1 that of one with gaps."""
    arguments, publishing = parsed(_parser())
    target = detect_target("llvm-cpu", arguments.threads)
    file = arguments.file or FOLDER / f"{arguments.machine or target.processor}-{arguments.threads}-threads.json"
    return collect(arguments, file, target) if arguments.verb == "collect" else judge(file, target, publishing)


def collect(arguments: argparse.Namespace, file: Path, target: Target) -> int:
    """Measure the networks that are not in the file."""
    end = time.monotonic() + 60 * arguments.minutes
    if wrong := [name for name in arguments.networks if name not in SHORTER]:
        raise UserError(f"{wrong[0]} has no inputs of several sizes; these have: {', '.join(SHORTER)}")
    asked = list(product(arguments.networks or SHORTER, arguments.parts))
    found, failed = known_networks(file, target), 0
    file.parent.mkdir(parents=True, exist_ok=True)
    for network, part in asked:
        if (network, part) in [(each.network, each.part) for each in found]:
            continue
        if time.monotonic() >= end:
            say("not at its end yet; the same command goes on")
            return 3
        folder = arguments.keep.resolve() / f"{network}-{part}"
        try:
            export(network, folder, ENGINES, part=part)
            start = time.monotonic()
            found.append(measured(network, part, folder, target))
        except (MlirSchedError, PeerError) as error:
            say(f"{network}, inputs of 1 / {part}: {error}")
            failed += 1
            continue
        KEPT.write(file, found, _setting(target))
        say(*_lines(found[-1], time.monotonic() - start))
    return int(failed > 0)


def judge(file: Path, target: Target, publishing: Publishing) -> int:
    """Predict the variants of each network from the others.

    Raises:
        UserError: Nothing was measured on this machine.
    """
    networks = known_networks(file, target)
    if not networks:
        raise UserError(f"nothing is in {file} yet: python -m benchmarks networks.variants collect")
    found = judged(sorted(networks, key=lambda each: (each.network, each.part)), plans_on(target))
    table = results_table(found, target.cores, publishing)
    publishing.show(table, target)
    return 0


def known_networks(file: Path, target: Target) -> list[MeasuredNetwork]:
    """Return the networks of a file; none where there is no file.

    Raises:
        UserError: The file is of another machine, number of threads or compiler.
    """
    found = KEPT.read(file, _setting(target))
    if found is None and file.exists():
        raise UserError(f"{file} was measured elsewhere, or with another compiler: give another --file, or remove it")
    return found or []


def _setting(target: Target) -> dict[str, object]:
    return {"machine": dict(target.machine), "threads": target.cores, "compiler": target.compiler}


def _lines(network: MeasuredNetwork, taken_s: float) -> Iterator[str]:
    yield f"{network.network}, inputs of 1 / {network.part}: {seconds(network.call_s)} per call, in {taken_s:.0f} s"
    for each in network.variants:
        ratio = f"{each.ratio:.2f}x" if each.ratio is not None else each.why
        yield f"  {each.name}: {ratio}, compiled in {each.build_s:.1f} s, timed in {each.timing_s:.1f} s"


def _parser() -> argparse.ArgumentParser:
    parser = options_of(__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("collect", help="measure the variants of networks")
    one.add_argument("networks", nargs="*", metavar="NETWORK", help=f"by default all of {', '.join(SHORTER)}")
    one.add_argument("--parts", nargs="+", type=int, default=PARTS, help="what the lengths of inputs are divided by")
    one.add_argument("--minutes", type=float, default=math.inf, help="begin with no network after so many")
    one.add_argument("--keep", type=Path, default=ROOT / "benchmarks" / ".variants", help="folder of the exports")
    for each in (one, verbs.add_parser("judge", help="judge predictions")):
        each.add_argument("--threads", type=int, default=1)
        each.add_argument("--machine", help="name of the machine; by default that of its processor")
        each.add_argument("--file", type=Path, help="file of what is measured; by default in benchmarks/data/variants")
    return parser
