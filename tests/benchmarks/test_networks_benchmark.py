"""The benchmark of whole networks: wrong results are refused, and the fastest way of every engine counts."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from fixed_targets import FIXED

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.result_table import Unit
from benchmarks.figures.sampling import Samples, TimedWay
from benchmarks.figures.tables import cell_text
from benchmarks.kept import converter
from benchmarks.networks import export
from benchmarks.networks.comparison import (
    OTHER_FLAGS,
    Result,
    Setting,
    WrongResultError,
    differences,
    result_of,
    tune_network,
)
from benchmarks.networks.families import FAMILIES
from benchmarks.networks.modules import input_path, input_paths
from benchmarks.networks.networks import NETWORKS
from benchmarks.networks.results import join, others_took, results_table
from benchmarks.operators import programs
from benchmarks.operators.programs import TUNED
from benchmarks.peers.make_engines import ENGINES
from benchmarks.peers.tuning import Tuning

REFERENCE = np.linspace(-3e-9, 2e-9, 100, dtype=np.float32)


def test_runs_with_other_minutes_seeds_or_threads_keep_tunings_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned = list[Path]()

    def tune(path: Path, folder: Path, **_: object) -> SimpleNamespace:
        assert path == tmp_path / "model.mlir"
        folder.mkdir()
        tuned.append(folder)
        return SimpleNamespace(trials=len(tuned))

    monkeypatch.setattr(programs, "tune", tune)
    setting = Setting(FIXED, (0,), ENGINES, (), 2.0, 0, 12, 2.0, tmp_path)
    others = {"minutes": 2.5}, {"seed": 1}, {"target": replace(FIXED, cores=2)}
    settings = [setting, *(replace(setting, **other) for other in others)]
    first = [tune_network(tmp_path, each) for each in settings]
    assert [took.trials for took in first] == [1, 2, 3, 4]
    assert [tune_network(tmp_path, each) for each in settings] == first, "none is tuned again"
    assert tuned == [each.tuned(tmp_path) for each in settings]


def samples(label: str, seconds: float, detail: str = "") -> Samples:
    calls = tuple(seconds * (1 + 0.001 * turn) for turn in range(8))
    return Samples(TimedWay("peer", 0, label, detail), calls, (True,) * 8)


def test_differences_are_relative_to_the_largest_result() -> None:
    found = differences({"PyTorch": [REFERENCE], "IREE": [REFERENCE * np.float32(1 + 1e-6)]})
    assert found["PyTorch"] == 0.0
    assert found["IREE"] == pytest.approx(1e-6, rel=0.2)


@pytest.mark.parametrize(
    "wrong",
    [np.zeros_like(REFERENCE), REFERENCE[:-1], np.where(REFERENCE > 1.9e-9, 0, REFERENCE), REFERENCE * np.nan],
    ids=["zeros", "shorter", "a part", "not a number"],
)
def test_a_wrong_result_is_refused(wrong: np.ndarray) -> None:
    with pytest.raises(WrongResultError, match=TUNED):
        differences({"PyTorch": [1e9 * REFERENCE, REFERENCE], TUNED: [1e9 * REFERENCE, wrong]})


def test_a_missing_result_is_refused() -> None:
    with pytest.raises(WrongResultError, match=TUNED):
        differences({"PyTorch": [REFERENCE, REFERENCE], TUNED: [REFERENCE]})


def test_a_reference_of_zeros_is_refused() -> None:
    with pytest.raises(WrongResultError):
        differences({"PyTorch": [np.zeros(4, np.float32)], TUNED: [np.zeros(4, np.float32)]})


def test_the_fastest_way_of_the_fastest_engine_is_the_measure() -> None:
    given = [
        samples(TUNED, 6e-3), samples("IREE", 40e-3), samples("OpenVINO", 5e-3), samples("ONNX Runtime", 7e-3),
        samples("PyTorch", 9e-3), samples("PyTorch", 8e-3, "channels last"),
    ]  # fmt: skip
    given += [samples(OTHER_FLAGS, 4e-3, "O3"), samples("TVM MetaSchedule", 5.5e-3)]
    result = result_of("resnet50", given, Tuning(500, 480.0), {})
    result = replace(result, others={"TVM MetaSchedule": Tuning(300, 960.0), "PyTorch, compiled": Tuning(0, 60.0)})
    assert result.best == "OpenVINO", "IREE itself is no engine to compare with"
    assert result.over_best.median == pytest.approx(1.2)
    assert result.seconds["PyTorch"].median == pytest.approx(8e-3, rel=0.01)
    assert others_took(join([result])) == [
        "resnet50: TVM MetaSchedule: 300 trials, 16.0 min, PyTorch, compiled: 1.0 min"
    ]


def seed(network: str, tuned_s: float, engine_s: float, trials: int) -> Result:
    """Return a result as a later process reads it."""
    given = [samples(TUNED, tuned_s), samples("OpenVINO", engine_s)]
    result = result_of(network, given, Tuning(trials, 300.0), {})
    return read_back(result)


def read_back(result: Result) -> Result:
    return converter().structure(json.loads(json.dumps(asdict(result))), Result)


def test_results_of_several_seeds_are_one_row() -> None:
    rows = join(
        [seed("a", 6e-3, 5e-3, 100), seed("b", 1e-3, 2e-3, 50), seed("a", 4e-3, 5e-3, 90), seed("a", 5e-3, 5e-3, 70)]
    )
    assert [(row.network, len(row.results)) for row in rows] == [("a", 3), ("b", 1)]
    middle, low, high = rows[0].over_best
    assert (low, middle, high) == pytest.approx((0.8, 1.0, 1.2), rel=0.02)


def test_a_network_that_is_compared_is_no_other_family() -> None:
    assert not NETWORKS.keys() & FAMILIES.keys()


def test_the_networks_of_the_families_are_their_functions_that_need_no_argument() -> None:
    assert len(FAMILIES) == 33
    assert [*FAMILIES][:2] == ["vit", "vit_tiny"]
    assert FAMILIES.keys() >= {"resnet18", "detector_head", "bert_mini", "tcn", "gnn", "vocoder"}
    assert not FAMILIES.keys() & {"image", "tokens", "bert", "classifier", "_mixer"}


def test_inputs_are_found_in_the_order_of_the_arguments(tmp_path: Path) -> None:
    for place in (1, 0, 11, *range(2, 11)):
        np.save(input_path(tmp_path, place), np.full(1, place))
    assert input_path(tmp_path, 0).name == "input.npy"
    assert [np.load(path).item() for path in input_paths(tmp_path)] == [*range(12)]


def test_results_of_several_seeds_are_a_table_of_a_file() -> None:
    rows = join(
        [
            replace(seed("a", 6e-3, 5e-3, 100), seed=0, minutes=5.0, threads=2),
            replace(seed("b", 1e-3, 2e-3, 50), seed=0, minutes=5.0, threads=2),
            replace(seed("a", 4e-3, 5e-3, 90), seed=1, minutes=5.0, threads=2),
        ]
    )
    rows = join([read_back(result) for row in rows for result in row.results])
    table = results_table(rows, Publishing(Path("machine.json"), ("Two seeds.",), "python -m benchmarks networks"))
    assert (table.name, table.threads, table.seeds) == ("networks-2-threads-5-minutes", 2, (0, 1))
    assert table.versions["openvino"]
    titles = [column.title for column in table.columns]
    (first, second) = (dict(zip(titles, cells, strict=True)) for _, cells in table.rows)
    assert cell_text(first[TUNED], Unit.SECONDS) == "5.02 ms (4.01 to 6.02)"
    assert cell_text(first["over the fastest"], Unit.RATIO) == "1.00 (0.80 to 1.20), OpenVINO"
    assert cell_text(first["trials"], Unit.COUNT) == "95 (90 to 100)"
    assert cell_text(second[TUNED], Unit.SECONDS) == "1.00 ms (1.00 to 1.01)", "one seed has the interval of timing"


def test_an_export_that_was_killed_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kills = [KeyboardInterrupt()]

    def save_mlir(path: Path) -> None:
        path.write_text("module {")
        if kills:
            raise kills.pop()
        path.write_text("module {}")

    aot = SimpleNamespace(export=lambda *_: SimpleNamespace(save_mlir=save_mlir))
    modules = {"torch": SimpleNamespace(), "iree.turbine": SimpleNamespace(aot=aot), "iree.turbine.aot": aot}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(export, "network", lambda *_: (None, ()))
    monkeypatch.setattr(export, "change_of_results", lambda *_: 1.0)
    with pytest.raises(KeyboardInterrupt):
        export.export("a network", tmp_path, inline=True)
    assert not (tmp_path / "model.mlir").exists()
    export.export("a network", tmp_path, inline=True)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("model.mlir", "module {}")]
