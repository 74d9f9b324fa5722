"""The tuned folder holds one whole result, whenever its writer is killed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlir_sched.compiler.flags import library_in, read_response_file, without_library
from mlir_sched.tuned_folder.claim import Claim
from mlir_sched.tuned_folder.folder import read_tuned_folder
from mlir_sched.tuned_folder.installation import EmittedFiles, emission_of, install
from mlir_sched.tuned_folder.manifest import ResultWriter, Source
from mlir_sched.tuned_folder.names import MANIFEST


def library(name: str) -> str:
    return f'module attributes {{mlir_sched.emission = "{name * 12}"}} {{\n}}\n'


SCRIPTS = EmittedFiles(library("a"), ("--target=cpu",))
OTHERS = EmittedFiles(library("b"), ("--target=cpu", "--level=3"))
FLAGS_ONLY = EmittedFiles("", ("--target=cpu", "--tiling"))
CLAIM = Claim(Source("digest", "model.mlir", "llvm-cpu"))
RESULTS = {"scripts": SCRIPTS, "others": OTHERS, "flags": FLAGS_ONLY}


def put(folder: Path, files: EmittedFiles) -> None:
    install(folder, CLAIM, files, json.dumps({"emission": files.emission, "flags": files.flags}))


def write_page(folder: Path, text: str) -> None:
    writer = ResultWriter.of(folder, CLAIM.source)
    writer.write("report.html", text.encode())
    writer.finish()


def held(folder: Path) -> EmittedFiles | None:
    """Return what plain ``iree-compile @flags.txt`` would be given; None when there is no result."""
    if not (folder / "flags.txt").exists():
        return None
    flags = read_response_file((folder / "flags.txt").read_text())
    named = library_in(flags)
    return EmittedFiles(named.read_text() if named else "", without_library(flags))


@pytest.mark.promise
@pytest.mark.sweep("landing")
@pytest.mark.parametrize("before", ["nothing", "scripts", "flags"])
@pytest.mark.parametrize("after", ["others", "flags"])
def test_a_writer_that_is_killed_at_any_file_operation_leaves_one_whole_result(
    tmp_path: Path, before: str, after: str
) -> None:
    seen = set()
    for count in range(1, 100):
        folder = tmp_path / str(count)
        folder.mkdir()
        if before != "nothing":
            put(folder, RESULTS[before])
            write_page(folder, before)
        ended = kill_at(folder, RESULTS[after], count)
        found = held(folder)
        assert found in (RESULTS.get(before), RESULTS[after])
        seen.add(found)
        assert found == RESULTS.get(before) or not (folder / "report.html").exists(), "the report of another result"
        if found is not None:
            tuned = read_tuned_folder(folder)
            assert tuned.library == found.library
            assert not tuned.problem
            assert tuned.summary.get("emission", found.emission) == found.emission
        for following, names in ((FLAGS_ONLY, []), (OTHERS, ["library.mlir"])):  # the next runs clean up
            put(folder, following)
            assert sorted(path.name for path in folder.iterdir()) == [MANIFEST, "flags.txt", *names, "summary.json"]
            assert held(folder) == following
        if not ended:
            break
    assert not ended
    assert seen == {RESULTS.get(before), RESULTS[after]}


def kill_at(folder: Path, files: EmittedFiles, count: int) -> bool:
    """Install in a child process that ends at once at the given file operation; say whether it got there."""
    child = os.fork()
    if child == 0:
        _count_down(count)
        put(folder, files)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def _count_down(count: int) -> None:
    """Have this process end before or behind the given file operation."""
    left = [count]

    def step() -> None:
        left[0] -= 1
        if left[0] == 0:
            os._exit(9)

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def do(*arguments: Any, **options: Any) -> Any:
            step()
            result = call(*arguments, **options)
            step()
            return result

        return do

    for name in ("replace", "unlink", "fsync"):
        setattr(os, name, counted(getattr(os, name)))


def test_a_result_has_the_files_that_are_documented(tmp_path: Path) -> None:
    put(tmp_path, SCRIPTS)
    flags = read_response_file((tmp_path / "flags.txt").read_text())
    assert library_in(flags) == tmp_path / "library.mlir"
    assert (tmp_path / "library.mlir").read_text() == SCRIPTS.library
    put(tmp_path, FLAGS_ONLY)
    assert sorted(path.name for path in tmp_path.iterdir()) == [MANIFEST, "flags.txt", "summary.json"]


def test_a_summary_of_another_library_is_not_read(tmp_path: Path) -> None:
    put(tmp_path, SCRIPTS)
    assert read_tuned_folder(tmp_path).summary["emission"] == emission_of(SCRIPTS.library)
    (tmp_path / "library.mlir").write_text(OTHERS.library)
    assert read_tuned_folder(tmp_path).summary == {}
