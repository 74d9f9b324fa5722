"""The census of networks: what only moves elements is known by its ops, and what is in the file is not done again."""

from __future__ import annotations

import json
import shutil
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path

import pytest
import rule_ops
from fixed_targets import FIXED
from replayed_run import matmul_dispatch, task_of

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.sampling import Samples, TimedWay
from benchmarks.figures.tables import cell_text
from benchmarks.folders import MODELS
from benchmarks.networks.census import command
from benchmarks.networks.census.command import keep_censuses, kept_censuses
from benchmarks.networks.census.counting import (
    AS_IT_IS,
    REWRITTEN,
    NetworkCensus,
    OtherDispatch,
    ProgramCensus,
    census_of,
)
from benchmarks.networks.census.counting import TUNED as EMITTED
from benchmarks.networks.census.movement import Movement, movement_of, written_bytes
from benchmarks.networks.census.network import take_census
from benchmarks.networks.census.results import named, results_table, summary
from benchmarks.networks.comparison import Setting, result_of
from benchmarks.operators.programs import TUNED
from benchmarks.peers.make_engines import ENGINES
from benchmarks.peers.tuning import Tuning
from mlir_sched.errors import UserError
from mlir_sched.payload import Dispatch, LinalgOp, OpKind, TensorSpec
from mlir_sched.program.plan import Plan
from mlir_sched.program.profile import ProgramProfile
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks import Model
from mlir_sched.tasks.task import Task

ASKED = {"threads": 1, "minutes": None}
MOVES = OtherDispatch("d1", "linalg.transpose 64x32", "", Movement.TRANSPOSES, 0.3, 8192)
LOOSE = OtherDispatch("d2", "linalg.generic 64", "it gathers", None, 0.2, 256)
SMALL = OtherDispatch("d3", "linalg.copy 4", "", Movement.COPIES, 0.001, 16)


def op(body: tuple[str, ...], read: tuple[int, ...] = (0, 1), kind: OpKind = OpKind.ELEMENTWISE) -> LinalgOp:
    """Return an op of 8 x 16 iterations that reads a tensor with its dimensions in an order."""
    shape = tuple((8, 16)[dim] for dim in read)
    tensors = (rule_ops.operand("f32", shape, read, 2),), (rule_ops.operand("f32", (8, 16), (0, 1), 2),)
    return LinalgOp(0, "linalg.generic", kind, ("parallel",) * 2, (8, 16), *tensors, body)


def without_ops(name: str) -> Task:
    return replace(task_of(name, matmul_dispatch(8, 8, 8)), dispatch=None)


def moved(*ops: LinalgOp, other_ops: tuple[str, ...] = ()) -> Movement | None:
    numbered = tuple(replace(each, index=index) for index, each in enumerate(ops))
    return movement_of(task_of("d", Dispatch(numbered, (len(ops) - 1,), other_ops)))


GATHER = ("arith.index_cast", "linalg.index", "tensor.extract")


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ([op(())], Movement.COPIES),
        ([op((), read=(1, 0))], Movement.TRANSPOSES),
        ([op((), kind=OpKind.FILL)], Movement.FILLS),
        ([op(GATHER, kind=OpKind.OTHER)], Movement.GATHERS),
        ([op((), kind=OpKind.FILL), op((), read=(1, 0)), op(())], Movement.TRANSPOSES),
        ([op((), read=(1, 0)), op(("arith.addf",))], None),
        ([op((*GATHER, "arith.addf"), kind=OpKind.OTHER)], None),
        ([op(("arith.truncf",))], None),
    ],
    ids=["copy", "transpose", "fill", "gather", "several", "with a sum", "gather with a sum", "conversion"],
)
def test_what_only_moves_elements_is_known_by_its_ops(ops: list[LinalgOp], expected: Movement | None) -> None:
    assert moved(*ops) is expected


def test_tensors_that_are_put_together_are_copied_and_other_ops_compute() -> None:
    assert moved(op((), kind=OpKind.FILL), other_ops=("tensor.insert_slice",)) is Movement.COPIES
    assert moved(op(()), other_ops=("iree_linalg_ext.sort",)) is None
    unknown = replace(without_ops("d"), outputs=(TensorSpec((4,), "f32"),), inputs=(TensorSpec((8,), "f32"),), weight=3)
    assert movement_of(unknown) is None
    assert movement_of(replace(unknown, only_copies=True)) is Movement.COPIES
    assert written_bytes(replace(unknown, only_copies=True)) == 3 * 16
    in_place = replace(unknown, inputs=(TensorSpec((1,), "f32"), TensorSpec((4,), "f32")))
    assert written_bytes(in_place) == 3 * 4, "a part of a tensor is written"
    assert written_bytes(replace(task_of("d", Dispatch((op(()),), (0,))), weight=2)) == 2 * 4 * 8 * 16


def built(profile: ProgramProfile, *tasks: Task) -> BuiltVariant:
    return BuiltVariant(Variant(Plan()), Model("model.mlir", (), tasks, ()), b"", None, (), profile)


def test_a_program_is_counted_by_what_its_dispatches_take() -> None:
    tasks = [
        task_of("main_dispatch_0_product", matmul_dispatch(64, 64, 64)),
        task_of("main_dispatch_1_turned", Dispatch((op((), read=(1, 0)),), (0,))),
        replace(without_ops("main_dispatch_2_sort"), not_tunable="it sorts"),
    ]
    seconds = {task.name: taken_s for task, taken_s in zip(tasks, (5e-6, 2e-6, 1e-6), strict=True)}
    profile = ProgramProfile(seconds, dict.fromkeys(seconds, 1), between_s=2e-6)
    census = census_of("default", built(profile, *tasks), Space.default(FIXED), FIXED)
    assert census.scripted == pytest.approx(7 / 8)
    assert census.moved == pytest.approx(2 / 10), "of the whole call"
    assert census.between == pytest.approx(2 / 10)
    assert census.moved_bytes == 4 * 8 * 16
    assert census.moved_of_written == pytest.approx(4 * 8 * 16 / (4 * 8 * 16 + 4 * 64 * 64))
    assert [(each.movement, each.why) for each in census.others] == [(Movement.TRANSPOSES, ""), (None, "it sorts")]
    with pytest.raises(UserError, match="records no profile"):
        census_of("default", replace(built(profile), profile=None), Space.default(FIXED), FIXED)


def program(scripted: float, *others: OtherDispatch) -> ProgramCensus:
    return ProgramCensus("default", 2e-3, 0.0, scripted, 16384, others)


def test_dispatches_bind_where_a_goal_is_missed() -> None:
    assert program(0.95, SMALL, replace(LOOSE, share=0.05)).binding == ()
    assert program(0.8, LOOSE, SMALL).binding == (LOOSE,)
    assert program(1.0, MOVES, SMALL).binding == (MOVES, SMALL)
    assert program(0.8, MOVES, LOOSE).binding == (MOVES, LOOSE)


def census(name: str, *others: OtherDispatch) -> NetworkCensus:
    calls = {TUNED: 1.2e-3, "OpenVINO": 1e-3, "IREE": 9e-3}
    samples = [Samples(TimedWay("p", 0, label), (call_s,) * 8, (True,) * 8) for label, call_s in calls.items()]
    compared = result_of(name, samples, Tuning(64, 120.0), {})
    programs = {AS_IT_IS: program(0.5, LOOSE), REWRITTEN: program(0.8, *others)}
    return NetworkCensus(name, programs, {"packed": "too large"}, ("packed: KeyError",), compared)


def test_what_keeps_the_last_program_from_its_goals_is_named() -> None:
    lines = [*named(census("net", MOVES, LOOSE, SMALL))]
    assert lines == [
        "30.0% linalg.transpose 64x32: transposes 0.00819 MB",
        "20.0% linalg.generic 64: it gathers",
        "0.1% in all below 0.5% each: 1",
        "left out: packed: too large",
        "internal error: packed: KeyError",
    ]
    assert summary(census("net")).endswith("1.20 of OpenVINO")


def test_censuses_are_a_table_with_the_dispatches_that_bind() -> None:
    publishing = Publishing(Path("machine.json"), ("One run.",), "python -m benchmarks networks.census")
    table = results_table([census("net", MOVES)], publishing, threads=1, seed=3, minutes=2.0)
    assert (table.name, table.seeds) == ("census-1-threads-2-minutes", (3,))
    columns = {column.title: column for column in table.columns}
    ((_, cells),) = table.rows
    shown = {title: cell_text(cell, columns[title].unit) for title, cell in zip(columns, cells, strict=True)}
    assert shown["rewritten: can have scripts"] == "80 %"
    assert shown["rewritten: copies and transposes"] == "30 %"
    assert shown["rewritten: of MB written"] == "50 %"
    assert shown["over OpenVINO"] == "1.20"
    assert table.notes[0] == "net, rewritten: 30.0% linalg.transpose 64x32: transposes 0.00819 MB"


def test_what_is_kept_is_read_back_for_the_same_setting_alone(tmp_path: Path) -> None:
    file, found = tmp_path / "census.json", {"net": census("net", MOVES, LOOSE)}
    assert kept_censuses(file, ASKED) == {}
    keep_censuses(file, ASKED, found)
    assert kept_censuses(file, ASKED) == found
    with pytest.raises(UserError, match="'threads': 2"):
        kept_censuses(file, {**ASKED, "threads": 2})
    file.write_text(json.dumps({"version": 1, "setting": ASKED, "networks": [{"network": "net"}]}))
    with pytest.raises(UserError, match="not a file of censuses"):
        kept_censuses(file, ASKED)


def test_a_run_that_was_killed_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    taken, file = list[str](), tmp_path / "census.json"

    def take(name: str, setting: Setting, **wanted: bool) -> NetworkCensus:
        assert not any(wanted.values())
        del setting
        taken.append(name)
        if name == "killed" and taken.count(name) == 1:
            raise KeyboardInterrupt
        if name == "broken":
            raise UserError("IREE cannot compile it")
        return census(name)

    for name in ("first", "killed", "broken"):
        (tmp_path / "keep" / name).mkdir(parents=True)
        (tmp_path / "keep" / name / "model.mlir").touch()
    monkeypatch.setattr(command, "take_census", take)
    monkeypatch.setattr(command, "detect_target", lambda *_: FIXED)
    options = ["census", "first", "broken", "killed", "--keep", str(tmp_path / "keep"), "--json", str(file)]
    monkeypatch.setattr("sys.argv", options)
    with pytest.raises(KeyboardInterrupt):
        command.main()
    assert command.main() == 1, "one network has no census, and will be tried again"
    assert taken == ["first", "broken", "killed", "broken", "killed"]
    asked = {"threads": 1, "minutes": None, "seed": 0, "engines": False}
    assert list(kept_censuses(file, asked)) == ["first", "killed"]
    assert "broken: IREE cannot compile it" in capsys.readouterr().out


def test_a_network_that_is_not_known_ends_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser, arguments = ArgumentParser(), Namespace(keep=tmp_path, engines=False, minutes=None)
    with pytest.raises(SystemExit) as ended:
        command._require_networks(parser, ["nothing"], arguments)
    assert ended.value.code == 2
    assert "no such network: nothing; networks are mobilenet_v2, " in capsys.readouterr().err


def setting(target: Target, folder: Path) -> Setting:
    return Setting(target, (0,), ENGINES, (), 0.1, 0, 12, 2.0, folder)


@pytest.mark.promise
@pytest.mark.usefixtures("short_sessions")
def test_a_transpose_moves_all_of_its_time_tuned_or_not(tmp_path: Path, here: Target) -> None:
    (tmp_path / "turned").mkdir()
    shutil.copy(MODELS / "transpose.mlir", tmp_path / "turned" / "model.mlir")
    found = take_census("turned", setting(here, tmp_path), tuned=True)
    assert found.programs.keys() == {AS_IT_IS, EMITTED}, "no rewrite applies"
    for each in found.programs.values():
        assert [other.movement for other in each.binding] == [Movement.TRANSPOSES]
        assert each.moved + each.between == pytest.approx(1.0)
        assert each.moved_bytes == each.written_bytes == 4 * 768 * 1024
    assert found.internal_errors == ()


@pytest.mark.promise
def test_the_census_of_a_network_is_taken_before_and_after_its_rewrites(tmp_path: Path, here: Target) -> None:
    (tmp_path / "blocks").mkdir()
    shutil.copy(MODELS / "inverted_residuals.mlir", tmp_path / "blocks" / "model.mlir")
    found = take_census("blocks", setting(here, tmp_path))
    untuned, rewritten = (found.programs[name] for name in (AS_IT_IS, REWRITTEN))
    assert untuned.variant == "default"
    assert rewritten.variant.startswith("channels_last")
    assert rewritten.scripted > 0.9
    assert 0.0 < untuned.moved < 0.5
