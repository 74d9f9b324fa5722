"""Whole runs with two sets of options: each is done once, and the programs of both are timed in turns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import iree_cases as cases
import numpy as np
import pytest
from replayed_run import TARGET

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.result_table import Figure
from benchmarks.networks.modules import input_path
from benchmarks.peers.tuning import Tuning
from benchmarks.strategies import command, networks
from benchmarks.strategies.networks import NetworkPair, Setting, interval_of, pairs_of, results_table
from mlir_sched.errors import UserError
from mlir_sched.runner.cores import choose_cores
from mlir_sched.runner.statistics import Interval, median_interval
from mlir_sched.targets.target import Target

OPTIONS = {"A": "--transfer off", "B": ""}


def setting(keep: Path, options: Mapping[str, str] = OPTIONS) -> Setting:
    return Setting(TARGET, (0,), "transfer", options, 5.0, 8, 0.1, keep)


class Peer:
    """A process in which the program of A takes 2 s and that of B 1 s."""

    def __init__(self, *_: object) -> None:
        self.ways: list[str] = []

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask(self, request: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        self.ways = [program["label"] for program in request["programs"]]
        path = f"{request['output']}.npy"
        np.save(path, np.ones(3, np.float32))
        return {"ways": [{"label": label, "outputs": [path]} for label in self.ways]}

    def sample(self, way: int, seconds: float) -> tuple[float, bool]:
        return {"A": 2.0, "B": 1.0}[self.ways[way]], True


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Have nothing tuned, compiled or timed; return the commands of the runs."""
    commands: list[list[str]] = []

    def run(module: str, *command: str, timeout_s: float) -> bytes:
        assert module == "mlir_sched.cli"
        commands.append([*command])
        Path(command[command.index("-o") + 1]).mkdir()
        return json.dumps({"trials": 40, "run_seconds": 290.0}).encode()

    entry = SimpleNamespace(name="main", inputs=(), outputs=())
    monkeypatch.setattr(networks, "run_module", run)
    monkeypatch.setattr(networks, "extract", lambda *_, **__: SimpleNamespace(entries=[entry]))
    monkeypatch.setattr(networks, "compile_model", lambda *_: None)
    monkeypatch.setattr(networks, "PeerProcess", Peer)
    return commands


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    """Return the folders of two networks."""
    made = [tmp_path / name for name in ("one", "two")]
    for folder in made:
        folder.mkdir()
        (folder / "model.mlir").touch()
        np.save(folder / "input.npy", np.ones(3, np.float32))
    return made


def test_every_network_is_tuned_with_both_options_and_timed_in_turns(
    runs: list[list[str]], folders: list[Path], tmp_path: Path
) -> None:
    found = list(pairs_of(folders, 2, setting(tmp_path / "keep")))
    assert [(pair.network, pair.seed) for pair in found] == [("one", 0), ("two", 0), ("one", 1), ("two", 1)]
    assert {pair.ratio.median for pair in found} == {0.5}
    assert ["--transfer" in run for run in runs] == [True, False] * 2 + [False, True] * 2
    assert runs[0][-8:] == ["--minutes", "5", "--threads", "1", "--seed", "0", "--transfer", "off"]
    assert found[0].tuning["B"].trials == 40


def test_what_is_done_is_not_done_again(runs: list[list[str]], folders: list[Path], tmp_path: Path) -> None:
    before = list(pairs_of(folders[:1], 1, setting(tmp_path / "keep")))
    assert list(pairs_of(folders[:1], 1, setting(tmp_path / "keep"))) == before
    assert len(runs) == 2
    list(pairs_of(folders[:1], 1, setting(tmp_path / "keep", {**OPTIONS, "B": "--no-templates"})))
    assert len(runs) == 3, "the run with A's options is done already"


def test_a_folder_without_a_network_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no exported network"):
        list(pairs_of([tmp_path], 1, setting(tmp_path)))


def pair(network: str, seed: int, ratio: Interval) -> NetworkPair:
    return NetworkPair("transfer", network, seed, ratio, {"A": Tuning(30, 1.0), "B": Tuning(50, 1.0)})


def test_a_network_has_the_middle_seeds_interval_however_many_others_reach_further(tmp_path: Path) -> None:
    found = [pair("one", seed, median_interval([low, low + 0.1])) for seed, low in enumerate((0.9, 0.8, 1.0))]
    assert interval_of(found) == pytest.approx((0.95, 0.9, 1.0))
    table = results_table(found, setting(tmp_path), Publishing(None, (), "command"))
    ((name, (runs, ratio, seeds, trials, *_)),) = table.rows
    assert isinstance(ratio, Figure)
    assert (name, runs, ratio.low, seeds, trials) == ("one", Figure(3), 0.9, "0.95, 0.85, 1.05", Figure(30))
    assert table.notes == ("Options of A: --transfer off; of B: none.",)


def test_the_verdict_takes_the_intervals_of_all_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        found = [asdict(pair(name, seed, median_interval([0.9, 1.0]))) for seed in range(2)]
        (tmp_path / name).write_text(json.dumps(found))
    assert command._networks([tmp_path / "one", tmp_path / "two"]) == {"transfer": [(0.9, 1.0)] * 2}


@pytest.mark.landing
def test_a_program_is_tuned_and_timed_on_this_machine(tmp_path: Path, here: Target) -> None:
    (folder := tmp_path / "product").mkdir()
    (folder / "model.mlir").write_text(cases.MATMUL)
    rng = np.random.default_rng(0)
    for place, shape in enumerate(((64, 32), (32, 64))):
        np.save(input_path(folder, place), rng.standard_normal(shape, dtype=np.float32))
    asked = Setting(here, choose_cores(1), "transfer", {"A": "", "B": "--strategy random"}, 0.1, 2, 0.01, tmp_path)
    (found,) = pairs_of([folder], 1, asked)
    assert 0.1 < found.ratio.median < 10
    assert all(took.seconds > 0 for took in found.tuning.values())
