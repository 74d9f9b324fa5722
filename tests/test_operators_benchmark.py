"""The benchmark of operators: its table, its turns, its report, and one run without other frameworks."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from payloads import matmul

from benchmarks.operators import comparison, programs
from benchmarks.operators.client import ROOT, PeerError, PeerProcess, PeerSpec
from benchmarks.operators.make_peer import REQUIREMENTS, missing, peer_spec
from benchmarks.operators.peer import EMPTY, CannotRun, Peer, Prepared, Server, Way
from benchmarks.operators.programs import TUNED, Built, Compiled
from benchmarks.operators.report import means_of, notes_of, relative_speed, table_of, write_chart, write_json
from benchmarks.operators.roofline import Level, Roofline
from benchmarks.operators.rows import Row, columns_of
from benchmarks.operators.sampling import Contender, Samples, interleave, ratio
from benchmarks.operators.table import OPERATORS, Operator, flops_of, operator_of_file, valid_taps
from benchmarks.operators.tuning import Tuning
from mlir_sched import TuneOptions
from mlir_sched.payload import TensorSpec
from mlir_sched.runner.verify import dtype_of
from mlir_sched.target import Target
from mlir_sched.tasks import EntryPoint, extract

TINY = matmul(16, 16, 16).text
ROOFLINE = Roofline((0,), 100e9, (Level("L1", 1 << 15, 200e9), Level("L2", 1 << 20, 100e9), Level("DRAM", 0, 20e9)))


def samples(label: str, calls_s: Sequence[float], *, peer: str = "iree", detail: str = "", way: int = 0) -> Samples:
    return Samples(Contender(peer, way, label, detail), tuple(calls_s), (True,) * len(calls_s))


def row(name: str, times: dict[str, float], notes: tuple[str, ...] = ()) -> Row:
    taken = tuple(samples(label, [t] * 8) for label, t in times.items())
    columns, kernel_time = columns_of(taken, {"iree": samples("empty", [1e-6] * 8)})
    return Row(name, columns, kernel_time, {"iree": 1e-6}, 1e-4, "FMA", 100, 100, {TUNED: Tuning(8, 3.0)}, notes, taken)


def test_taps_on_padding_are_not_counted() -> None:
    assert valid_taps(4, 3) == 6
    assert valid_taps(4, 3, padding=1) == 10
    assert valid_taps(5, 2, stride=2, dilation=2) == 4


def test_every_operator_has_programs_that_say_what_they_are() -> None:
    assert len({operator.name for operator in OPERATORS}) == len(OPERATORS) == 14
    for operator in OPERATORS:
        assert operator.flops is not None
        assert operator.flops > 0
        for path in operator.files:
            assert path.read_text().startswith("// "), path


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_every_program_has_at_least_the_operations_that_its_table_asks_for(operator: Operator, here: Target) -> None:
    assert operator.flops is not None
    models = [extract(path, here) for path in operator.files]
    assert len({(model.entries[0].inputs, model.entries[0].outputs) for model in models}) == 1
    for model in models:
        counted = flops_of(model)
        if operator.name in ("GMM", "TBG", "MM1024", "FFN"):
            assert counted == operator.flops
        else:
            assert counted >= operator.flops


def test_a_round_has_one_sample_of_each_in_changing_order() -> None:
    contenders = [Contender("iree", 0, "a"), Contender("torch", 0, "b"), Contender("torch", EMPTY, "empty")]
    order: list[Contender] = []

    def sample(contender: Contender) -> tuple[float, bool]:
        order.append(contender)
        return 1.0 + contenders.index(contender), len(order) > 3

    taken = interleave(contenders, sample, rounds=10, patience_s=60, rng=np.random.default_rng(0))
    rounds = [order[i : i + 3] for i in range(0, 30, 3)]
    assert all(set(one) == set(contenders) for one in rounds)
    assert len({tuple(one) for one in rounds}) > 1
    assert [s.contender for s in taken] == contenders
    assert all(len(s.calls_s) == 10 and len(s.kept_s) == 9 for s in taken)
    assert taken[1].interval.median == 2.0


def test_sampling_ends_when_patience_does() -> None:
    taken = interleave(
        [Contender("iree", 0, "a")], lambda _: (1.0, True), rounds=50, patience_s=-1, rng=np.random.default_rng(0)
    )
    assert len(taken[0].calls_s) == 6


def test_ratio_pairs_the_samples_of_a_round_and_drops_disturbed_ones() -> None:
    own = Samples(Contender("iree", 0, TUNED), (1.0, 2.0, 4.0, 1.0, 1.0, 1.0, 1.0), (True,) * 7)
    other = Samples(Contender("torch", 0, "torch"), (2.0, 4.0, 8.0, 2.0, 2.0, 2.0, 90.0), (True,) * 6 + (False,))
    found = ratio(other, own)
    assert (found.low, found.median, found.high) == (2.0, 2.0, 2.0)


def test_short_rows_compare_kernel_time_and_the_fastest_way_of_a_column_counts() -> None:
    taken = (
        samples("IREE default", [12e-6] * 6),
        samples(TUNED, [8e-6] * 6, detail="slow"),
        samples(TUNED, [6e-6] * 6, detail="fast", way=1),
        samples("torch", [9e-6] * 6, peer="torch"),
    )
    overhead = {"iree": samples("empty", [2e-6] * 6), "torch": samples("empty", [3e-6] * 6, peer="torch")}
    columns, kernel_time = columns_of(taken, overhead)
    assert kernel_time
    assert columns[TUNED].detail == "fast"
    assert columns[TUNED].time.median == pytest.approx(4e-6)
    torch = columns["torch"].ratio
    assert torch is not None
    assert torch.median == pytest.approx(1.5)


def test_an_empty_call_that_takes_as_long_leaves_a_little_time() -> None:
    assert samples("a", [1e-6]).less(2e-6).calls_s == (1e-8,)


def test_roofline_takes_the_level_that_holds_the_data() -> None:
    assert ROOFLINE.seconds(1000, 1 << 15) == ((1 << 15) / 200e9, "L1")
    assert ROOFLINE.seconds(1000, 1 << 16) == ((1 << 16) / 100e9, "L2")
    assert ROOFLINE.seconds(10**9, 1 << 30) == ((1 << 30) / 20e9, "DRAM")
    assert ROOFLINE.seconds(10**9, 64) == (0.01, "FMA")
    assert Roofline.from_json(json.loads(json.dumps(ROOFLINE.to_json()))) == ROOFLINE


def test_report_names_the_best_peer_and_what_is_missing(tmp_path: Path) -> None:
    rows = [
        row("A", {"IREE default": 4e-4, "torch": 3e-4, TUNED: 2e-4}, ("tvm: not installed",)),
        row("B", {"IREE default": 4e-6, TUNED: 5e-6}, ("tvm: not installed", "torch: no equivalent is known")),
    ]
    assert rows[0].best_peer == "torch"
    assert rows[0].of_roofline == pytest.approx(0.5)
    assert [rows[1].kernel_time, rows[1].best_peer] == [True, "IREE default"]
    assert relative_speed(rows[0], "torch") == pytest.approx(2 / 3)
    assert relative_speed(rows[1], "torch") == 0.0
    assert table_of(rows).row_count == 2
    notes = notes_of(rows, ROOFLINE)
    assert "tvm: not installed" in notes
    assert "torch: no equivalent is known (B)" in notes
    write_chart(tmp_path / "chart.png", rows)
    assert (tmp_path / "chart.png").stat().st_size > 1000
    write_json(tmp_path / "all.json", rows, ROOFLINE, {"trials": 8})
    data = json.loads((tmp_path / "all.json").read_text())
    assert data["rows"][0]["columns"]["torch"]["ratio"]["median"] == pytest.approx(1.5)
    assert data["rows"][0]["tuning"][TUNED] == {"trials": 8, "seconds": 3.0}


def test_means_are_over_the_rows_that_have_both() -> None:
    tuned = [
        row("A", {"IREE default": 8e-4, "IREE O3": 4e-4, "TVM MetaSchedule": 2e-4, TUNED: 2e-4}),
        row("B", {"IREE default": 9e-4, "TVM MetaSchedule": 8e-4, TUNED: 2e-4}),
        row("C", {"IREE default": 1e-4, TUNED: 2e-4}),
        row("D", {"IREE default": 1e-4}),
    ]
    slower = {"TVM MetaSchedule": Tuning(8, 12.0)}
    rows = [replace(tuned[0], tuning={**tuned[0].tuning, **slower}), *tuned[1:]]
    assert means_of(rows) == [
        "time relative to the best other: 0.79 (geometric mean; rows: 3, faster on 1)",
        "time relative to the best of IREE: 0.61 (geometric mean; rows: 3, faster on 2)",
        "time relative to IREE default: 0.48 (geometric mean; rows: 3, faster on 2)",
        "time relative to IREE O3: 0.50 (geometric mean; rows: 1, faster on 1)",
        "time relative to TVM MetaSchedule: 0.50 (geometric mean; rows: 2, faster on 1)",
        "tuning time relative to TVM MetaSchedule: 0.25 (geometric mean; rows: 1)",
    ]


class FakePeer(Peer):
    """A framework that sleeps."""

    def empty_call(self) -> Callable[[int], None]:
        return lambda calls: time.sleep(1e-4 * calls)

    def prepare(self, request: Mapping[str, Any], inputs: Sequence[np.ndarray[Any, Any]]) -> Prepared:
        if request["operator"] == "unknown":
            raise CannotRun("no equivalent is known")
        way = Way("fake", "", lambda calls: time.sleep(2e-3 * calls), lambda: inputs[0] + 1)
        return Prepared((way,), trials=3, seconds=1.5)


def test_a_peer_prepares_samples_and_refuses(tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", np.ones(2, np.float32))
    server = Server(FakePeer((0,)))
    request = {"ask": "prepare", "inputs": [str(tmp_path / "in.npy")], "output": str(tmp_path / "out")}
    assert server.answer(request | {"operator": "unknown"}) == {"error": "no equivalent is known"}
    reply = server.answer(request | {"operator": "C2D"})
    assert (reply["trials"], reply["seconds"]) == (3, 1.5)
    assert np.load(reply["ways"][0]["output"]).tolist() == [2.0, 2.0]
    sample = server.answer({"ask": "sample", "way": 0, "seconds": 0.006})
    assert sample["call_s"] >= 2e-3
    assert not sample["alone"]  # it slept instead of computing
    assert server.answer({"ask": "sample", "way": EMPTY, "seconds": 1e-3})["call_s"] < sample["call_s"]
    assert "IndexError" in server.answer({"ask": "sample", "way": 5, "seconds": 1e-3})["error"]


class FakeProcess:
    """A peer's process that answers at once; PyTorch's second way is wrong, and TVM fails."""

    def __init__(self, spec: PeerSpec, cores: Sequence[int]) -> None:
        self.name = spec.name

    def __enter__(self) -> FakeProcess:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask(self, request: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        if request["ask"] == "sample":
            return {"call_s": {"iree": 1e-3, "torch": 2e-3}[self.name], "alone": True}
        if self.name == "tvm":
            raise PeerError("crashed")
        results = {"iree": [1.0], "torch": [1.0, 1.5]}[self.name]
        for index, value in enumerate(results):
            np.save(f"{request['output']}-{index}.npy", np.full((2, 2), value, np.float32))
        label = {"iree": TUNED, "torch": "torch"}[self.name]
        ways = [
            {"label": label, "detail": str(i), "output": f"{request['output']}-{i}.npy"} for i in range(len(results))
        ]
        return {"ways": ways, "trials": 0, "seconds": 0.0}


def test_wrong_numbers_are_not_timed_and_a_failing_peer_is_a_note(
    tmp_path: Path, here: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    square = TensorSpec((2, 2), "f32")
    program = Compiled(TUNED, "", tmp_path / "0.vmfb", EntryPoint("main", (square,), (square,)))
    built = Built((program,), 8, 32, Tuning(4, 2.0), ("IREE O3: does not compile",))
    monkeypatch.setattr(comparison, "PeerProcess", FakeProcess)
    monkeypatch.setattr(comparison, "build", lambda *_, **__: built)
    monkeypatch.setattr(comparison, "build_empty", lambda *_: program)
    monkeypatch.setattr(comparison, "missing", lambda _: None)
    peers = tuple(peer_spec(name, tmp_path) for name in ("torch", "tvm"))
    setting = comparison.Setting(here, (0,), ROOFLINE, peers, 4, 0, 8, 1e-3, 10.0, 10.0)
    found = comparison.compare_operator(OPERATORS[0], setting)
    assert set(found.columns) == {TUNED, "torch"}
    assert found.columns["torch"].detail == "0"
    against = found.columns["torch"].ratio
    assert against is not None
    assert against.median == pytest.approx(2.0)
    assert found.tuning == {TUNED: Tuning(4, 2.0)}
    assert found.notes[0] == "IREE O3: does not compile"
    assert found.notes[1].startswith("torch 1: wrong numbers, not timed")
    assert found.notes[2] == "tvm: crashed"


def test_a_missing_framework_says_how_to_get_it(tmp_path: Path) -> None:
    for name in REQUIREMENTS:
        note = missing(peer_spec(name, tmp_path))
        assert note is not None
        assert f"benchmarks.operators.make_peer {name}" in note


def test_a_peer_that_ends_says_why() -> None:
    spec = PeerSpec("none", Path(sys.executable), "benchmarks.operators.no_such_peer")
    with PeerProcess(spec, (0,)) as process, pytest.raises(PeerError, match="no_such_peer"):
        process.ask({"ask": "prepare"}, 60)


def test_the_row_of_a_file_is_named_after_it() -> None:
    operator = operator_of_file(Path("some/model.mlir"))
    assert (operator.name, operator.flops, operator.known) == ("model", None, False)


def test_a_run_without_other_frameworks(tmp_path: Path) -> None:
    (tmp_path / "tiny.mlir").write_text(TINY)
    options = ["--trials", "2", "--rounds", "3", "--sample-s", "0.001", "--peers-folder", str(tmp_path)]
    files = ["--json", str(tmp_path / "all.json"), "--chart", str(tmp_path / "chart.png")]
    command = [sys.executable, "-m", "benchmarks.operators", str(tmp_path / "tiny.mlir"), *options, *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads((tmp_path / "all.json").read_text())["rows"]
    assert {"IREE default", "IREE O3", "IREE data-tiling", "IREE fused-padding", TUNED} == set(found["columns"])
    assert (found["flops"], found["moved_bytes"]) == (2 * 16**3, 3 * 4 * 16**2)
    assert found["tuning"][TUNED]["trials"] == 2
    assert found["kernel_time"]
    assert "tvm: no equivalent is known" in done.stdout
    assert (tmp_path / "chart.png").stat().st_size > 1000


def test_what_is_kept_is_not_tuned_again(tmp_path: Path, here: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tiny.mlir").write_text(TINY)
    operator = operator_of_file(tmp_path / "tiny.mlir")
    tuned: list[Path] = []

    def tune(_: Path, folder: Path, *, options: TuneOptions) -> SimpleNamespace:
        tuned.append(folder)
        folder.mkdir()
        (folder / "flags.txt").write_text("\n".join(here.flags))
        return SimpleNamespace(trials=options.trials, seconds=7.0)

    monkeypatch.setattr(programs, "tune", tune)
    found = [programs.build(operator, here, tmp_path, trials=2, seed=0) for _ in range(2)]
    assert [built.tuning for built in found] == [Tuning(2, 7.0)] * 2
    assert tuned == [tmp_path / "tuned-tiny"]


def test_what_is_no_operator_is_refused() -> None:
    command = [sys.executable, "-m", "benchmarks.operators", "XYZ"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert "operators are C1D, C2D" in done.stderr


def test_results_in_bf16_are_read_as_such(tmp_path: Path) -> None:
    spec, path = TensorSpec((3,), "bf16"), tmp_path / "result.npy"
    saved = np.arange(3).astype(dtype_of(spec))
    np.save(path, saved)
    assert np.load(path).dtype.kind == "V"
    assert (comparison.load_result(path, spec) == saved).all()
