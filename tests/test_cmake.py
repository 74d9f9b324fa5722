"""The CMake package: a model is compiled with its tuned folder as a build step, and again when the folder changes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from folders import ROOT

EXAMPLE = ROOT / "examples" / "cmake_project"
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def run(*command: object, ok: bool = True) -> str:
    """Run a command with the Python environment of this test in front of the path; return all it printed."""
    words = [str(word) for word in command]
    result = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (result.returncode == 0) == ok, result.stdout + result.stderr
    return result.stdout + result.stderr


def configure(source: Path, build: Path, *options: str, ok: bool = True) -> str:
    return run("cmake", "-S", source, "-B", build, *options, ok=ok)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a copy of the example in a folder with a space, and so a tuned folder that has moved."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "my project"))


def test_the_checkout_builds_and_its_ctest_finds_the_script_applied(tmp_path: Path) -> None:
    configure(ROOT, tmp_path)
    run("cmake", "--build", tmp_path)
    assert (tmp_path / "examples" / "cmake_project" / "matmul.vmfb").stat().st_size > 0
    assert "scripts applied: 1" in run("ctest", "--test-dir", tmp_path, "-V")


def test_find_package_works_from_the_checkout_and_rebuilds_only_on_change(project: Path, tmp_path: Path) -> None:
    build = tmp_path / "build"
    configure(project, build, f"-Dmlir_sched_DIR={ROOT / 'cmake'}")
    assert "Compiling model.mlir" in run("cmake", "--build", build)
    assert "Compiling" not in run("cmake", "--build", build)
    for changed in ("model.mlir", "tuned/flags.txt", "tuned/library.mlir"):
        (project / changed).touch()
        assert "Compiling" in run("cmake", "--build", build), changed
    assert "scripts applied: 1" in run("ctest", "--test-dir", build, "-V")


def test_find_package_works_after_install(project: Path, tmp_path: Path) -> None:
    prefix, build = tmp_path / "prefix", tmp_path / "build"
    configure(ROOT, tmp_path / "package", f"-DCMAKE_INSTALL_PREFIX={prefix}")
    run("cmake", "--install", tmp_path / "package")
    configure(project, build, f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", build)
    assert (build / "matmul.vmfb").exists()


def test_a_stale_absolute_path_in_flags_is_taken_from_the_folder(project: Path, tmp_path: Path) -> None:
    flags = project / "tuned" / "flags.txt"
    flags.write_text(flags.read_text().replace("=library.mlir", '="/no where/library.mlir"'))
    assert_applied(project, tmp_path / "build")


def test_the_library_is_passed_when_flags_do_not_name_it(project: Path, tmp_path: Path) -> None:
    flags = project / "tuned" / "flags.txt"
    flags.write_text("".join(line for line in flags.open() if "library" not in line))
    assert_applied(project, tmp_path / "build")


def assert_applied(project: Path, build: Path) -> None:
    configure(project, build, f"-Dmlir_sched_DIR={ROOT / 'cmake'}")
    run("cmake", "--build", build)
    assert "scripts applied: 1" in run("ctest", "--test-dir", build, "-V")


def test_more_flags_reach_the_compiler(project: Path, tmp_path: Path) -> None:
    lists = project / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace("OUTPUT matmul.vmfb", 'OUTPUT matmul.vmfb FLAGS "--no-such-flag=a b"'))
    configure(project, tmp_path / "build", f"-Dmlir_sched_DIR={ROOT / 'cmake'}")
    assert "--no-such-flag=a b" in run("cmake", "--build", tmp_path / "build", ok=False)
    assert not (tmp_path / "build" / "matmul.vmfb").exists()


def test_a_model_that_no_script_matches_fails_the_check(project: Path, tmp_path: Path) -> None:
    model = project / "model.mlir"
    model.write_text(model.read_text().replace("64", "48"))
    configure(project, tmp_path / "build", f"-Dmlir_sched_DIR={ROOT / 'cmake'}")
    run("cmake", "--build", tmp_path / "build")
    message = failed_check(tmp_path / "build")
    assert "strategy_0" in message


SECOND_STRATEGY = """
  transform.named_sequence @strategy_1(%func: !transform.any_op {transform.consumed}) {
    %name = transform.param.constant "strategy_1" -> !transform.any_param
    transform.annotate %func "mlir_sched.applied" = %name : !transform.any_op, !transform.any_param
    transform.yield
  }
"""
WITHOUT_NAME = """
  transform.named_sequence @by_hand(%func: !transform.any_op {transform.consumed}) {
    transform.annotate %func "mlir_sched.applied" : !transform.any_op
    transform.yield
  }
"""


@pytest.mark.parametrize(
    ("strategy", "missing"), [(SECOND_STRATEGY, "strategy_1"), (WITHOUT_NAME, "1 of 2 apply")], ids=["name", "no-name"]
)
def test_a_script_that_does_not_apply_beside_one_that_does_fails_the_check(
    project: Path, tmp_path: Path, strategy: str, missing: str
) -> None:
    library = project / "tuned" / "library.mlir"
    library.write_text(f"{library.read_text().rstrip().removesuffix('}')}{strategy}}}\n")
    configure(project, tmp_path / "build", f"-Dmlir_sched_DIR={ROOT / 'cmake'}")
    run("cmake", "--build", tmp_path / "build")
    message = failed_check(tmp_path / "build")
    assert missing in message


def failed_check(build: Path) -> str:
    """Return what the check of a build folder says, on one line; it must fail."""
    lines = run("ctest", "--test-dir", build, "-V", ok=False).splitlines()
    return " ".join(word for line in lines for word in line.removeprefix("1: ").split())


def test_an_error_of_a_compiler_that_exits_with_0_ends_the_build(project: Path, tmp_path: Path) -> None:
    compiler = tmp_path / "iree-compile"
    compiler.write_text('#!/bin/sh\nfor last; do :; done\necho code > "$last"\necho "model.mlir:1:1: error: odd" >&2\n')
    compiler.chmod(0o755)
    configure(project, tmp_path / "build", f"-Dmlir_sched_DIR={ROOT / 'cmake'}", f"-DIREE_COMPILE={compiler}")
    assert "error: odd" in run("cmake", "--build", tmp_path / "build", ok=False)
    assert not (tmp_path / "build" / "matmul.vmfb").exists()


@pytest.mark.parametrize("name", ["it's", "it's ours", "user@host", "a{b"])
def test_folders_with_odd_names_are_used_or_refused(project: Path, tmp_path: Path, name: str) -> None:
    moved = project.rename(tmp_path / name)
    configure(moved, tmp_path / "build", f"-Dmlir_sched_DIR={ROOT / 'cmake'}")
    possible = "'" in name
    assert ("choose a folder" not in run("cmake", "--build", tmp_path / "build", ok=possible)) == possible


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("TUNED tuned", "TUNED missing", "missing has no flags.txt: write it with"),
        ("TUNED tuned", "", "TUNED is missing"),
        ("TUNED tuned", "TUNED tuned TYPO x", "unknown arguments: TYPO;x"),
    ],
)
def test_a_wrong_call_is_refused(project: Path, tmp_path: Path, old: str, new: str, message: str) -> None:
    lists = project / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace(old, new))
    output = configure(project, tmp_path / "build", f"-Dmlir_sched_DIR={ROOT / 'cmake'}", ok=False)
    assert message in " ".join(output.split())


def test_a_given_compiler_is_used(project: Path, tmp_path: Path) -> None:
    configure(project, tmp_path / "build", f"-Dmlir_sched_DIR={ROOT / 'cmake'}", "-DIREE_COMPILE=/bin/false")
    assert "iree-compile failed" in run("cmake", "--build", tmp_path / "build", ok=False)
