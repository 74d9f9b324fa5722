"""The benchmark of operators: its table, its turns, its frameworks, and one run without other frameworks."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import time
import venv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from contraction_payloads import matmul

from benchmarks.figures import roofline
from benchmarks.figures.roofline import Level, Roofline
from benchmarks.figures.rows import CALLS, KERNELS, PLAIN, PLAIN_CALLER, SYNC
from benchmarks.figures.sampling import TimedWay, interleave
from benchmarks.folders import MODELS, ROOT
from benchmarks.operators import command as operators_command
from benchmarks.operators import comparison, programs
from benchmarks.operators.programs import TUNED, Built, Compiled
from benchmarks.operators.table import OPERATORS, Operator, flops_of, operator_of_file, valid_taps
from benchmarks.peers import make_peer
from benchmarks.peers.client import PeerError, PeerProcess, PeerSpec, environment_of
from benchmarks.peers.make_peer import REQUIREMENTS, missing, peer_spec
from benchmarks.peers.peer import LONG_S, CannotRun, Peer, Prepared, Server, Way, timed
from benchmarks.peers.tuning import Clock, Tuning, kept_tuning
from mlir_sched import TuneOptions
from mlir_sched.payload import TensorSpec
from mlir_sched.runner.checks.check import InputKind
from mlir_sched.runner.client import ENVIRONMENT
from mlir_sched.targets.target import Target
from mlir_sched.tasks import EntryPoint, extract
from mlir_sched.tensors.element_types import dtype_of

TINY = matmul(16, 16, 16).text
ROOFLINE = Roofline((0,), 100e9, (Level("L1", 1 << 15, 200e9), Level("L2", 1 << 20, 100e9), Level("DRAM", 0, 20e9)))


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


@pytest.mark.promise
@pytest.mark.sweep("landing")
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


@pytest.mark.promise
def test_conversions_are_no_operations(here: Target) -> None:
    wide, narrow = (extract(MODELS / f"matmul_1024{kind}.mlir", here) for kind in ("", "_f16"))
    assert flops_of(wide) == flops_of(narrow) == 2 * 1024**3


def test_a_call_before_each_sample_fills_the_caches_but_for_long_calls() -> None:
    made: list[int] = []

    def run(calls: int) -> None:
        made.append(calls)
        time.sleep(LONG_S if len(made) > 3 else 1e-3)

    timed(run, 1, threads=1)
    assert made == [1, 1]
    timed(run, 5, threads=1)
    assert made[2:] == [1, 5]
    made[:] = [0, 0, 0]
    assert timed(run, 1, threads=1)[0] >= LONG_S
    assert made == [0, 0, 0, 1]


def test_a_round_has_one_sample_of_each_in_changing_order() -> None:
    timed_ways = [TimedWay("iree", 0, "a"), TimedWay("torch", 0, "b"), TimedWay("torch", 1, "", empty=True)]
    order: list[TimedWay] = []

    def sample(timed: TimedWay) -> tuple[float, bool]:
        order.append(timed)
        return 1.0 + timed_ways.index(timed), len(order) > 3

    taken = interleave(timed_ways, sample, rounds=10, patience_s=60, rng=np.random.default_rng(0))
    rounds = [order[i : i + 3] for i in range(0, 30, 3)]
    assert all(set(one) == set(timed_ways) for one in rounds)
    assert len({tuple(one) for one in rounds}) > 1
    assert [s.timed for s in taken] == timed_ways
    assert all(len(s.calls_s) == 10 and len(s.kept_s) == 9 for s in taken)
    assert taken[1].interval.median == 2.0


def test_sampling_ends_when_patience_does() -> None:
    taken = interleave(
        [TimedWay("iree", 0, "a")], lambda _: (1.0, True), rounds=50, patience_s=-1, rng=np.random.default_rng(0)
    )
    assert len(taken[0].calls_s) == 6


class FakePeer(Peer):
    """A framework that sleeps."""

    def prepare(self, request: Mapping[str, Any], inputs: Sequence[np.ndarray[Any, Any]]) -> Prepared:
        if request["operator"] == "unknown":
            raise CannotRun("no equivalent is known")
        way = Way("fake", "", lambda calls: time.sleep(2e-3 * calls), lambda: [inputs[0] + 1, inputs[0]])
        return Prepared((way,), {"": lambda calls: time.sleep(1e-4 * calls)}, {"fake": Tuning(3, 1.5)}, ("a note",))


def test_a_peer_prepares_samples_and_refuses(tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", np.ones(2, np.float32))
    server = Server(FakePeer((0,)))
    request = {"ask": "prepare", "inputs": [str(tmp_path / "in.npy")], "output": str(tmp_path / "out")}
    assert server.answer(request | {"operator": "unknown"}) == {"error": "no equivalent is known"}
    reply = server.answer(request | {"operator": "C2D"})
    assert reply["tuning"] == {"fake": {"trials": 3, "seconds": 1.5}}
    assert (reply["empty_calls"], reply["notes"]) == ([""], ["a note"])
    assert [np.load(path).tolist() for path in reply["ways"][0]["outputs"]] == [[2.0, 2.0], [1.0, 1.0]]
    sample = server.answer({"ask": "sample", "way": 0, "seconds": 0.006})
    assert sample["call_s"] >= 2e-3
    assert not sample["alone"]  # it slept instead of computing
    assert server.answer({"ask": "sample", "way": 1, "seconds": 1e-3})["call_s"] < sample["call_s"]  # the empty call
    assert "IndexError" in server.answer({"ask": "sample", "way": 5, "seconds": 1e-3})["error"]


class FakeProcess:
    """A peer's process that answers at once; PyTorch's second way is wrong, and TVM fails."""

    result = np.arange(4, dtype=np.float32).reshape(2, 2)

    def __init__(self, spec: PeerSpec, cores: Sequence[int]) -> None:
        self.name = spec.name

    def __enter__(self) -> FakeProcess:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def sample(self, way: int, seconds: float) -> tuple[float, bool]:
        return {"iree": 1e-3, "torch": 2e-3, PLAIN: 3e-3, SYNC: 5e-4}[self.name], True

    def ask(self, request: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        if self.name == "tvm":
            raise PeerError("crashed")
        results = [1.0, 1.5] if self.name == "torch" else [1.0] * len(request["programs"])
        for index, value in enumerate(results):
            np.save(f"{request['output']}-{index}.npy", (value * self.result).astype(np.float32))
        labels = ["torch eager"] * 2 if self.name == "torch" else [p["label"] for p in request["programs"]]
        ways = [
            {"label": label, "detail": str(i), "outputs": [f"{request['output']}-{i}.npy"]}
            for i, label in enumerate(labels)
        ]
        return {"ways": ways, "empty_calls": [""], "tuning": {}, "notes": []}


@pytest.fixture
def built(tmp_path: Path) -> Built:
    """One program."""
    square = TensorSpec((2, 2), "f32")
    program = Compiled(TUNED, "", tmp_path / "0.vmfb", EntryPoint("main", (square,), (square,)), ("local-sync",))
    return Built((program,), 8, 32, Tuning(4, 2.0), ("IREE O3: does not compile",))


@pytest.fixture
def setting(tmp_path: Path, here: Target, built: Built, monkeypatch: pytest.MonkeyPatch) -> comparison.Setting:
    """Two seeds with :class:`FakeProcess`; nothing is built."""
    (program,) = built.programs
    monkeypatch.setattr(comparison, "PeerProcess", FakeProcess)
    monkeypatch.setattr(comparison, "build", lambda *_, **__: built)
    monkeypatch.setattr(comparison, "build_empty", lambda *_: program)
    monkeypatch.setattr(comparison, "missing", lambda _: None)
    monkeypatch.setattr(roofline, "measure", lambda _: ROOFLINE)
    peers = tuple(peer_spec(name, tmp_path) for name in ("torch", "tvm"))
    return comparison.Setting(here, (0,), peers, 4, (5, 6), 8, 1e-3, 10.0, 10.0, tmp_path / "kept", plain_caller=True)


@pytest.mark.promise
def test_a_reference_that_tells_nothing_is_a_note(setting: comparison.Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeProcess, "result", np.full((2, 2), np.nan, np.float32))
    assert any(
        note.startswith("the numbers cannot be checked: output 0 has no finite element")
        for note in comparison.compare_operator(OPERATORS[0], setting).notes
    )


@pytest.mark.promise
def test_wrong_numbers_are_not_timed_and_a_failing_peer_is_a_note(
    setting: comparison.Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = comparison.compare_operator(OPERATORS[0], setting)
    assert [len(found.sessions), found.sessions[1].seed] == [2, 6]
    assert set(found.calls.columns) == {TUNED, "torch eager"}
    assert found.calls.columns["torch eager"].details == ("0",)
    assert str(found.calls.against(["torch eager"])) == "2.00 (2.00 to 2.00)"
    assert str(found.views[PLAIN_CALLER].against(["torch eager"])) == "0.67 (0.67 to 0.67)"
    assert found.tuning == {TUNED: (Tuning(4, 2.0),) * 2}
    assert found.notes[0] == "IREE O3: does not compile"
    assert found.notes[1].startswith("torch eager 1: wrong numbers, not timed")
    assert found.notes[2] == "tvm: crashed"
    monkeypatch.setattr(comparison, "build", None)  # what was kept needs nothing built
    assert comparison.compare_operator(OPERATORS[0], setting) == found


@pytest.mark.promise
def test_on_several_threads_programs_for_the_calling_thread_are_in_a_process_of_their_own(
    setting: comparison.Setting, built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = replace(built.programs[0], label="IREE default", devices=("local-task", "local-sync"))
    monkeypatch.setattr(comparison, "build", lambda *_, **__: replace(built, programs=(both, *built.programs)))
    columns = comparison.compare_operator(OPERATORS[0], replace(setting, cores=(0, 1))).calls.columns
    peers = {label: {s.timed.peer for s in column.samples.values()} for label, column in columns.items()}
    assert peers == {"IREE default": {SYNC}, TUNED: {SYNC}, "torch eager": {"torch"}}
    assert columns[TUNED].details == ("1, local-sync",)


def test_a_missing_framework_says_how_to_get_it(tmp_path: Path) -> None:
    for name in REQUIREMENTS:
        note = missing(peer_spec(name, tmp_path))
        assert note is not None
        assert f"python -m benchmarks make_peer {name}" in note


def test_an_environment_that_cannot_be_made_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def make(name: str, *_: object) -> None:
        if name == "torch":
            raise subprocess.CalledProcessError(1, ["pip"])

    monkeypatch.setattr(make_peer, "make", make)
    monkeypatch.setattr(sys, "argv", ["make_peer", "torch", "tvm", "--folder", str(tmp_path)])
    with pytest.raises(SystemExit, match="torch: pip ended with exit code 1"):
        make_peer.main()
    assert capsys.readouterr().out.startswith("tvm: ")


@pytest.mark.parametrize(("words", "made"), [([], ["torch", "tvm"]), (["tvm"], ["tvm"])])
def test_every_environment_is_made_unless_some_are_named(
    words: list[str], made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = list[str]()
    monkeypatch.setattr(make_peer, "make", lambda name, *_: names.append(name))
    monkeypatch.setattr(sys, "argv", ["make_peer", *words])
    make_peer.main()
    assert names == made


def test_pytorch_comes_from_an_index_of_its_own_or_from_that_of_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = list[list[object]]()
    monkeypatch.setattr(venv, "create", lambda folder, with_pip: None)
    monkeypatch.setattr(subprocess, "run", lambda command, check: commands.append([*command]))
    options = ["--folder", str(tmp_path), "--torch-index", "https://example.org/wheels"]
    monkeypatch.setattr(sys, "argv", ["make_peer", *options])
    make_peer.main()
    with_torch, with_tvm = commands
    assert with_torch[-4:] == ["--extra-index-url", "https://example.org/wheels", "torch==2.13.0", "numpy"]
    assert "--extra-index-url" not in with_tvm
    assert not any("+cpu" in str(word) for word in with_torch), "pip's own index has no such version"


def test_an_unknown_peer_is_refused_with_the_known_ones(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(make_peer, "make", lambda name, *_: pytest.fail(f"{name} is made"))
    monkeypatch.setattr(sys, "argv", ["make_peer", "jax"])
    with pytest.raises(SystemExit):
        make_peer.main()
    assert "no peer 'jax': choose from torch, tvm" in capsys.readouterr().err


@pytest.mark.promise
def test_an_environment_without_its_framework_says_so() -> None:
    spec = PeerSpec("tvm", Path(sys.executable), "benchmarks.peers.peer_tvm")
    with PeerProcess(spec, (0,)) as process, pytest.raises(PeerError, match="this process needs TVM"):
        process.ask({"ask": "prepare"}, 60)


@pytest.fixture
def peer_torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The peer of PyTorch with a PyTorch whose ``torch.compile`` finds no C++ compiler."""

    class Tensor(np.ndarray[Any, Any]):
        def numpy(self) -> np.ndarray[Any, Any]:
            return np.asarray(self)

    def fail(call: object, *, dynamic: bool) -> None:
        raise RuntimeError("InvalidCxxCompiler: No working C++ compiler found")

    torch: Any = SimpleNamespace(
        nn=SimpleNamespace(functional=None), channels_last=0, channels_last_3d=1, bmm=None, mm=np.matmul, compile=fail
    )
    torch.from_numpy, torch.ones = lambda a: a.view(Tensor), lambda n: np.ones(n).view(Tensor)
    torch.set_num_threads = lambda _: None
    torch.inference_mode = lambda: SimpleNamespace(__enter__=lambda: None)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.delitem(sys.modules, "benchmarks.peers.peer_torch", raising=False)
    yield importlib.import_module("benchmarks.peers.peer_torch")
    del sys.modules["benchmarks.peers.peer_torch"]


def test_without_a_compiler_the_eager_calls_stay(
    tmp_path: Path, peer_torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "")  # so that it is put back
    square = np.eye(2, dtype=np.float32)
    request = {"operator": "MM1024", "work": str(tmp_path)}
    prepared = peer_torch.TorchPeer((0,)).prepare(request, [square, square])
    assert [way.label for way in prepared.ways] == ["torch eager"]
    assert (prepared.ways[0].results()[0] == square).all()
    assert prepared.notes == ("torch compile: RuntimeError: InvalidCxxCompiler: No working C++ compiler found",)
    monkeypatch.setattr(sys.modules["torch"], "compile", lambda call, dynamic: call)
    prepared = peer_torch.TorchPeer((0,)).prepare(request, [square, square])
    assert [way.label for way in prepared.ways] == ["torch eager", "torch compile"]
    assert list(prepared.empty_calls) == ["", "torch compile"]


def test_iree_runs_with_the_allocation_that_the_tool_times_with() -> None:
    name = "MALLOC_MMAP_THRESHOLD_"
    for spec in comparison.IREE_PEERS.values():
        assert environment_of(spec, (0,))[name] == ENVIRONMENT[name]
    assert name not in environment_of(peer_spec("torch"), (0,))


@pytest.mark.promise
def test_seconds_count_over_the_processes_that_worked_at_one_thing(tmp_path: Path) -> None:
    path = tmp_path / "seconds"
    work = (
        "import os, sys, time; from pathlib import Path; from benchmarks.peers.tuning import Clock\n"
        "with Clock(Path(sys.argv[1]), tick_s=0.05): time.sleep(0.4); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", work, str(path)], cwd=ROOT).returncode == -9
    killed_s = float(path.read_text())
    assert killed_s > 0.1
    with Clock(path) as clock:
        time.sleep(0.1)
    assert clock.seconds > killed_s + 0.1
    assert float(path.read_text()) > killed_s + 0.1


@pytest.mark.promise
def test_a_peer_that_ends_says_why() -> None:
    spec = PeerSpec("none", Path(sys.executable), "benchmarks.operators.no_such_peer")
    with PeerProcess(spec, (0,)) as process, pytest.raises(PeerError, match="no_such_peer"):
        process.ask({"ask": "prepare"}, 60)


def test_the_row_of_a_file_is_named_after_it() -> None:
    operator = operator_of_file(Path("some/model.mlir"))
    assert (operator.name, operator.flops, operator.known) == ("model", None, False)


@pytest.mark.nightly
@pytest.mark.usefixtures("short_sessions")
def test_a_run_without_other_frameworks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tiny.mlir").write_text(TINY)
    options = ["--trials", "2", "--seeds", "1", "--rounds", "3", "--sample-s", "0.001", "--peers-folder", str(tmp_path)]
    files = ["--json", str(tmp_path / "all.json")]
    monkeypatch.setattr(sys, "argv", ["operators", str(tmp_path / "tiny.mlir"), *options, *files])
    operators_command.main()
    (found,) = json.loads((tmp_path / "all.json").read_text())["rows"]
    columns = {"IREE default", "IREE O3", "IREE data-tiling", "IREE fused-padding", TUNED}
    assert columns == set(found["views"][CALLS]["columns"])
    assert columns == set(found["views"][KERNELS]["columns"]) | set(found["views"][KERNELS]["unresolved"])
    (taken,) = found["sessions"]
    assert (taken["flops"], taken["moved_bytes"]) == (2 * 16**3, 3 * 4 * 16**2)
    assert taken["tuning"][TUNED]["trials"] == 2
    printed = capsys.readouterr().out
    assert "one seed: " in printed
    assert "tvm: no equivalent is known" in printed


@pytest.mark.landing
def test_what_is_kept_is_not_tuned_again_and_a_resumed_tuning_counts_all_its_seconds(
    tmp_path: Path, here: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tiny.mlir").write_text(TINY)
    operator = operator_of_file(tmp_path / "tiny.mlir")
    tuned: list[Path] = []

    def tune(_: Path, folder: Path, *, options: TuneOptions, parameters: Sequence[str]) -> SimpleNamespace:
        assert not parameters
        tuned.append(folder)
        folder.mkdir()
        (folder / "flags.txt").write_text("\n".join(here.flags))
        (folder / "summary.json").write_text('{"program": {"device": "local-sync"}}')
        return SimpleNamespace(trials=options.trials, seconds=7.0)

    monkeypatch.setattr(programs, "tune", tune)
    (tmp_path / "tuned-tiny-seconds").write_text("100.0")  # of a process that was killed
    found = [programs.build(operator, here, tmp_path, trials=2, seed=0) for _ in range(2)]
    assert found[0].tuning == found[1].tuning == kept_tuning(tmp_path / "tuned-tiny")
    assert found[0].tuning is not None
    assert (found[0].tuning.trials, round(found[0].tuning.seconds)) == (2, 100)
    assert tuned == [tmp_path / "tuned-tiny"]


@pytest.mark.landing
def test_what_is_no_operator_is_refused() -> None:
    command = [sys.executable, "-m", "benchmarks", "operators", "XYZ"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert "operators are C1D, C2D" in done.stderr


def test_results_in_bf16_are_read_as_such(tmp_path: Path) -> None:
    spec, path = TensorSpec((3,), "bf16"), tmp_path / "result.npy"
    saved = np.arange(3).astype(dtype_of(spec))
    np.save(path, saved)
    assert np.load(path).dtype.kind == "V"
    assert (comparison.load_result(path, spec) == saved).all()


@pytest.mark.parametrize("element_type", ["f32", "f16", "bf16", "i8"])
def test_wrong_numbers_of_a_peer_are_seen_in_every_type(element_type: str) -> None:
    spec = TensorSpec((64, 64), element_type)
    program = Compiled("IREE", "", Path("x.vmfb"), EntryPoint("main", (spec,), (spec,)), ("local-sync",))
    built = Built((program,), 1, 1, None, ())
    assert comparison.check_of(built).kind == InputKind.RANDOM
    right = np.random.default_rng(0).integers(1, 100, spec.shape).astype(dtype_of(spec))
    assert comparison.difference(right, right, built) is None
    tile, rows = right.copy(), right.copy()
    tile[:8, :8], rows[-1] = 0, right[0]
    for wrong in (np.zeros_like(right), tile, rows):
        assert comparison.difference(right, wrong, built)
