"""What tune refuses before it starts."""

import json
import shutil
import sqlite3
import sys
import textwrap
from pathlib import Path

import pytest
from command_line import MODEL, Cli, Ended

from mlir_sched.compiler import version as compiler_version_module
from mlir_sched.database import RecordStore
from mlir_sched.space.user_modules import load_modules


def test_a_folder_that_iree_cannot_be_told_is_refused_at_once(cli: Cli) -> None:
    for name in ("a{b", "user@host"):
        assert "choose another folder" in cli.refused("tune", "model.mlir", "-o", name)


@pytest.mark.promise
@pytest.mark.sweep("landing")
@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("empty.mlir", "", "the file is empty"),
        ("text.mlir", "hello, world", "text.mlir:1:"),
        ("type.mlir", "func.func @f(%a: i32) -> i64 { return %a : i32 }", "type.mlir:1:"),
        (
            "tosa.mlir",
            "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> "
            "{ %0 = tosa.mul %a, %a {shift = 0 : i8} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> "
            "return %0 : tensor<4xf32> }",
            "expected 3 operands, but found 2; the text may be of another version of tosa: IREE 3.13 reads TOSA 1.0",
        ),
        (
            "shapes.mlir",
            "func.func @f(%a: tensor<4xf32>) -> tensor<5xf32> "
            "{ %0 = tosa.exp %a : (tensor<4xf32>) -> tensor<5xf32> return %0 : tensor<5xf32> }",
            "shapes.mlir:1:",
        ),
        (
            "dynamic.mlir",
            "func.func @f(%a: tensor<4x?xf32>) -> tensor<4x?xf32> "
            "{ %0 = arith.addf %a, %a : tensor<4x?xf32> return %0 : tensor<4x?xf32> }",
            "dimension 1 of argument 0 of @f",
        ),
        (
            "zeros.mlir",
            "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> "
            "{ %0 = arith.subf %a, %a : tensor<4xf32> return %0 : tensor<4xf32> }",
            "nothing is tuned, as its numbers cannot be verified: output 0 is not to be told from zeros",
        ),
    ],
)
def test_a_file_that_is_no_tunable_program_is_refused(cli: Cli, name: str, text: str, expected: str) -> None:
    (cli.folder / name).write_text(text)
    assert expected in cli.refused("tune", name)


def test_a_missing_file_and_a_folder_are_refused_and_leave_nothing(cli: Cli) -> None:
    assert cli.refused("tune", "missing.mlir") == "error: missing.mlir: no such file"
    assert cli.refused("tune", ".") == "error: .: not a file"
    assert [path.name for path in cli.folder.iterdir()] == ["model.mlir"]


@pytest.mark.promise
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--trials", "-3"), "trials must be at least 0"),
        (("--trials", "0", "--transfer", "off", "--no-templates"), "nothing is left to choose from"),
        (("--trials", "0", "--strategy", "random"), "RandomSearch has no use"),
        (("--trials", "0", "--cost-model", "random"), "RandomModel has no use"),
        (("--trials", "0", "--minutes", "0"), "minutes must be above 0"),
        (("--minutes", "0"), "minutes must be above 0"),
        (("--minutes", "nan"), "minutes must be above 0"),
        (("--minutes", "inf"), "minutes must be at most"),
        (("--seed", "-1"), "seed must be a whole number from 0"),
        (("--seed", str(2**63)), "seed must be a whole number from 0"),
        (("--trials", "5", "--minutes", "1"), "not both"),
        (("--strategy", "guess"), "unknown search strategy 'guess'; known are evolutionary, random"),
        (("--target", "llvm-cpu:"), "names no device behind the colon"),
        (("--target", "abacus"), "unknown target 'abacus'; known are llvm-cpu, vulkan, cuda, rocm"),
        (("--threads", "0"), "threads must be above 0"),
        (
            ("--max-weights", "0.9"),
            "max_weights must be at least 1, which is what plain iree-compile needs",
        ),
        (("--threads", "9999"), "threads must be from 1"),
        (("--device", "local-sync", "--threads", "2"), "the device is local-task, or is left to the search"),
        (("--device", "local-task", "--threads", "1"), "the device local-task needs several threads, but threads is 1"),
        (("--input", "@missing.npy"), "missing.npy: no such file"),
        (("--reference", "4xf32=1"), "a reference is given, but no inputs"),
        (("--input", "4xf32=1", "--check-only"), "--input and --reference have no use with --check-only"),
        (("--output", "model.mlir/tuned"), "cannot write the output folder"),
        (("--store", "model.mlir"), "not a record store"),
        (("--store", ":memory:"), "give the path of a file"),
        (("--transfer", "missing.sqlite"), "missing.sqlite"),
        (("--transfer", "model.mlir"), "not a record store"),
        (("--transfer", "model.mlir", "--fresh"), "leave out the further store"),
        (("--module", "no_such_module:Module"), "No module named 'no_such_module'"),
        (("--module", "json:loads"), "json:loads cannot be loaded"),
        (("--module", "json"), "must be named as package.module:Class"),
    ],
)
def test_a_wrong_option_is_refused(cli: Cli, arguments: tuple[str, ...], expected: str) -> None:
    assert expected in cli.refused("tune", "model.mlir", *arguments)


@pytest.mark.parametrize(
    ("model", "needed", "extra"), [("gaussian-process", "botorch", "gp"), ("graph", "torch_geometric", "gnn")]
)
def test_a_cost_model_whose_packages_are_missing_names_the_command_that_installs_them(
    model: str, needed: str, extra: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("torch", needed):
        monkeypatch.setitem(sys.modules, package, None)
    message = cli.refused("tune", "model.mlir", "--cost-model", model)
    assert f"the cost model '{model}' needs packages that cannot be loaded (" in message
    assert message.endswith(f"pip install 'mlir-sched[{extra}]'")


@pytest.mark.promise
def test_another_release_of_the_compiler_is_refused(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler_version_module, "version", lambda _: "3.99.0")
    assert "IREE 3.13.x is needed, 3.99.0 is installed" in cli.refused("tune", "model.mlir")
    ended = cli("doctor", "--json")
    assert ended.code == 1
    assert not json.loads(ended.out)["can_tune"]


@pytest.mark.promise
def test_a_store_that_cannot_be_used_is_refused_and_left_alone(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlir_sched.pipeline.STORE_PATIENCE_S", 0.2)
    other = cli.folder / "other.db"
    RecordStore.open(other).close()
    with sqlite3.connect(other) as connection:
        connection.execute("UPDATE mlir_sched_schema SET version = 999")
    content = other.read_bytes()
    damaged = b"SQLite format 3\0" + bytes(range(256)) * 16
    (cli.folder / "damaged.db").write_bytes(damaged)
    RecordStore.open(cli.folder / "locked.db").close()
    lock = sqlite3.connect(cli.folder / "locked.db", isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    for arguments in (("tune", "model.mlir", "--store", "other.db"), ("inspect", "other.db")):
        assert "other.db has another schema (version 999, " in cli.refused(*arguments)
        assert other.read_bytes() == content
    assert "damaged" in cli.refused("tune", "model.mlir", "--store", "damaged.db")
    assert "another process holds it" in cli.refused("tune", "model.mlir", "--store", "locked.db")
    assert (cli.folder / "damaged.db").read_bytes() == damaged
    lock.close()


@pytest.mark.landing
def test_user_modules_that_raise_are_named_with_their_line(cli: Cli) -> None:
    (cli.folder / "raises_at_import.py").write_text("raise RuntimeError('no luck')\n")
    (cli.folder / "raises_later.py").write_text(
        textwrap.dedent("""
            from mlir_sched import ScheduleModule, TransformModule

            class InExtend(TransformModule):
                name = "in_extend"
                def extend(self, sketch, op, dispatch, target):
                    raise RuntimeError("no extension")

            class InSchedule(ScheduleModule):
                name = "in_schedule"
                def match(self, op, dispatch, target):
                    return op if op is dispatch.root else None
                def schedule(self, s, found):
                    raise RuntimeError("no schedule")
        """)
    )
    message = cli.refused("tune", "model.mlir", "--module", "raises_at_import:Module")
    assert "RuntimeError: no luck" in message
    assert "raises_at_import.py:1" in message
    assert "no extension" in cli.refused("tune", "model.mlir", "--module", "raises_later:InExtend")
    message = cli.refused(
        "tune", "model.mlir", "--module", "raises_later:InSchedule", "--trials", "4", "--threads", "1"
    )
    assert "'in_schedule' raised RuntimeError: no schedule" in message
    with RecordStore.open(cli.folder / "tuned" / "records.sqlite", read_only=True) as store:
        assert [store.contexts(task.key) for task in store.tasks()] != [()]  # the untuned timing is kept


def test_what_lies_in_the_working_directory_shadows_nothing_for_user_modules(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "wave", raising=False)
    (cli.folder / "wave.py").write_text("raise ImportError('planted')\n")
    (cli.folder / "found_here.py").write_text(
        "import wave\nfrom mlir_sched.transform_scripts.llvm_cpu.reduction import ReductionTiling\n"
    )
    (module,) = load_modules(["found_here:ReductionTiling"])
    assert module.name == "reduction"


def test_a_folder_in_which_something_would_be_lost_is_refused_before_anything_else(cli: Cli) -> None:
    (cli.folder / "library.mlir").write_text((cli.folder / "model.mlir").read_text())
    before = {path.name: path.read_text() for path in cli.folder.iterdir()}
    for more in ((), ("--replace",)):
        message = cli.refused("tune", "library.mlir", "-o", ".", *more)
        assert message.startswith("error: library.mlir: the run would write its own library.mlir in its place")
    message = cli.refused("tune", "model.mlir", "-o", ".")
    assert message.startswith("error: library.mlir is not known to be written by mlir-sched")
    assert "--replace" in message
    (cli.folder / "flags.txt").touch()
    assert "flags.txt: the run would" in cli.refused("tune", "model.mlir", "-o", ".", "--store", "flags.txt")
    assert "flags.txt: the run would" in cli.refused("tune", "model.mlir", "-o", ".", "--parameters", "flags.txt")
    assert before.items() <= {path.name: path.read_text() for path in cli.folder.iterdir()}.items()
    assert not (cli.folder / "records.sqlite").exists()


def test_the_result_of_another_model_is_kept(tuned: tuple[Path, Ended], cli: Cli) -> None:
    shutil.copytree(tuned[0] / "tuned", cli.folder / "tuned")
    (cli.folder / "other.mlir").write_text(MODEL.replace("128x256", "96x256"))
    expected = "error: tuned holds the result of another model, model.mlir; choose another folder with -o"
    assert cli.refused("tune", "other.mlir").startswith(expected)


def test_a_store_over_all_runs_that_is_no_file_is_refused_at_once(cli: Cli) -> None:
    assert "is a file, or off" in cli.refused("tune", "model.mlir", "--user-store", "postgresql://host/name")
