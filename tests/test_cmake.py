"""The CMake package: a model is compiled with its tuned folder as a build step, and again when the folder changes."""

import re
import shutil
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from cmake_builds import configure, quick_compiler, quick_encoder, run
from folders import ROOT
from rewriting import library_for, write
from rewriting import run as call
from scaled_product import SCALED, SIZE, write_weights

from mlir_sched.compiler import compile_to_bytes
from mlir_sched.compiler.flags import read_response_file, write_response_file
from mlir_sched.compiler.iree_compile import iree_compile_path
from mlir_sched.program.rewrites.folding.folded_constants import FoldedConstants

pytestmark = pytest.mark.promise

EXAMPLE = ROOT / "examples" / "cmake_project"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a copy of the example in a folder with a space, and so a tuned folder that has moved."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "my project"))


def test_the_checkout_builds_and_its_ctest_finds_the_script_applied(tmp_path: Path) -> None:
    configure(ROOT, tmp_path, package=None)
    run("cmake", "--build", tmp_path)
    assert (tmp_path / "examples" / "cmake_project" / "matmul.vmfb").stat().st_size > 0
    assert "scripts applied: 1" in run("ctest", "--test-dir", tmp_path, "-V")


def test_find_package_works_from_an_installed_wheel(wheel: Path, project: Path, tmp_path: Path) -> None:
    site, build = tmp_path / "site", tmp_path / "build"
    zipfile.ZipFile(wheel).extractall(site)
    output = run("env", f"PYTHONPATH={site}", sys.executable, "-P", "-m", "mlir_sched.cli", "--cmake-dir")
    package = Path(output.removesuffix("\n"))
    assert package == site / "mlir_sched" / "cmake"
    configure(project, build, package=package)
    assert "Compiling model.mlir" in run("cmake", "--build", build)
    assert "Compiling" not in run("cmake", "--build", build)
    (package / "mlir_sched_run_compiler.cmake").touch()
    assert "Compiling" in run("cmake", "--build", build)
    assert "scripts applied: 1" in run("ctest", "--test-dir", build, "-V")


def test_find_package_compares_versions(tmp_path: Path) -> None:
    versions = ("0.1", "0.1.0", "0.1.9", "0.2", "1.0")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(versions LANGUAGES NONE)\n"
        f"foreach(version {' '.join(versions)})\n"
        "  find_package(mlir_sched ${version} QUIET)\n"
        '  message(STATUS "${version}: ${mlir_sched_FOUND}")\n'
        "endforeach()\n"
    )
    output = configure(tmp_path, tmp_path / "build", "-DIREE_COMPILE=/bin/false")
    assert re.findall(r"-- ([0-9.]+): (\d)", output) == [
        (version, "1" if version in ("0.1", "0.1.0") else "0") for version in versions
    ]


def edit(project: Path, old: str, new: str) -> None:
    lists = project / "CMakeLists.txt"
    assert old in lists.read_text()
    lists.write_text(lists.read_text().replace(old, new))


@pytest.mark.landing
def test_the_module_is_made_again_when_and_only_when_a_file_that_it_is_made_from_changes(
    project: Path, tmp_path: Path
) -> None:
    build, inputs, weights = tmp_path / "build", project / "spec.mlir", project / "weights.irpa"
    compiler = quick_compiler(tmp_path / "iree")
    inputs.touch()
    weights.touch()
    emission = project / "tuned" / "library.0a1b.mlir"
    shutil.copy(project / "tuned" / "library.mlir", emission)
    edit(project, "OUTPUT matmul.vmfb", "OUTPUT matmul.vmfb DEPENDS spec.mlir")
    configure(project, build, f"-DIREE_COMPILE={compiler}")
    assert "Compiling" in run("cmake", "--build", build)
    library = compiler.parent.parent / "lib" / "libIREECompiler.so"
    tuned = [project / "tuned" / name for name in ("flags.txt", "library.mlir")]
    for changed in (project / "model.mlir", *tuned, emission, inputs, compiler, library):
        changed.touch()
        assert "Compiling" in run("cmake", "--build", build), changed
        for same in (weights, project / "tuned" / "summary.json"):
            same.touch()
        assert "Compiling" not in run("cmake", "--build", build), changed


def test_the_module_is_made_again_when_arguments_or_the_files_of_the_folder_change(
    project: Path, tmp_path: Path
) -> None:
    build, library = tmp_path / "build", project / "tuned" / "library.mlir"
    configure(project, build, f"-DIREE_COMPILE={quick_compiler(tmp_path / 'iree')}")
    assert "Compiling" in run("cmake", "--build", build)
    edit(project, "OUTPUT matmul.vmfb", "OUTPUT matmul.vmfb FLAGS --iree-opt-level=O3")
    assert "Compiling" in run("cmake", "--build", build)
    assert "Compiling" not in run("cmake", "--build", build)
    other = shutil.copy2(library, library.with_name("other.mlir"))
    assert "Compiling" in run("cmake", "--build", build)
    Path(other).unlink()
    assert "Compiling" in run("cmake", "--build", build)
    library.unlink()
    assert "has no library" in run("cmake", "--build", build, ok=False)
    assert not (build / "matmul.vmfb").exists()


@pytest.mark.landing
def test_find_package_works_after_install(project: Path, tmp_path: Path) -> None:
    prefix, build = tmp_path / "prefix", tmp_path / "build"
    configure(ROOT, tmp_path / "package", f"-DCMAKE_INSTALL_PREFIX={prefix}", package=None)
    run("cmake", "--install", tmp_path / "package")
    configure(project, build, f"-DCMAKE_PREFIX_PATH={prefix}", package=None)
    run("cmake", "--build", build)
    assert (build / "matmul.vmfb").exists()


@pytest.mark.landing
def test_a_stale_absolute_path_in_flags_is_taken_from_the_folder(project: Path, tmp_path: Path) -> None:
    flags = project / "tuned" / "flags.txt"
    flags.write_text(flags.read_text().replace("=library.mlir", '="/no where/library.mlir"'))
    assert_applied(project, tmp_path / "build")


@pytest.mark.landing
def test_the_library_is_passed_when_flags_do_not_name_it(project: Path, tmp_path: Path) -> None:
    flags = project / "tuned" / "flags.txt"
    lines = flags.read_text().splitlines(keepends=True)
    flags.write_text("".join(line for line in lines if "library" not in line))
    assert_applied(project, tmp_path / "build")


def assert_applied(project: Path, build: Path) -> None:
    configure(project, build)
    run("cmake", "--build", build)
    assert "scripts applied: 1" in run("ctest", "--test-dir", build, "-V")


ENCODED = "OUTPUT matmul.vmfb PARAMETERS model=weights.irpa ENCODE model=made/encoded.irpa FLAGS --iree-opt-level=O3"


def test_weights_are_encoded_in_the_build_step_and_again_when_they_change(project: Path, tmp_path: Path) -> None:
    build, weights = tmp_path / "build", project / "weights.irpa"
    compiler, program = quick_compiler(tmp_path / "iree"), quick_encoder(tmp_path / "iree" / "bin" / "mlir-sched")
    weights.touch()
    edit(project, "OUTPUT matmul.vmfb", ENCODED)
    configure(project, build, f"-DIREE_COMPILE={compiler}")
    assert "Compiling" in run("cmake", "--build", build)
    encoded = build / "made" / "encoded.irpa"
    assert (build / "matmul.vmfb").read_text().splitlines() == [
        str(compiler),
        *("compile", str(project / "model.mlir"), "--tuned", str(project / "tuned"), "-o", str(build / "matmul.vmfb")),
        *("--parameters", f"model={weights}", "--encode", f"model={encoded}", "--", "--iree-opt-level=O3"),
    ]
    assert encoded.exists()
    assert "Compiling" not in run("cmake", "--build", build)
    for changed in (weights, program):
        changed.touch()
        assert "Compiling" in run("cmake", "--build", build), changed
    encoded.unlink()
    assert "Compiling" in run("cmake", "--build", build)


@pytest.mark.landing
def test_a_program_is_built_with_its_encoded_weights(project: Path, tmp_path: Path) -> None:
    build, tuned = tmp_path / "build", project / "tuned"
    write_weights(project / "weights.irpa")
    model = write(project, SCALED)
    (tuned / "flags.txt").write_text(write_response_file(library_for(FoldedConstants(), model, tuned)))
    edit(project, "OUTPUT matmul.vmfb", ENCODED.partition(" FLAGS")[0])
    compiler, calls = tmp_path / "iree-compile", tmp_path / "calls"
    compiler.write_text(f"""#!/bin/sh\necho call >> "{calls}"\nexec "{iree_compile_path()}" "$@"\n""")
    compiler.chmod(0o755)
    configure(project, build, f"-DIREE_COMPILE={compiler}")
    output = run("cmake", "--build", build)
    assert "call" in calls.read_text()
    assert "with 1 computed and 0 original tensors" in output
    image = np.random.default_rng(1).standard_normal((4, SIZE)).astype(np.float32)
    plain = compile_to_bytes(model, read_response_file((tuned / "flags.txt").read_text()))
    expected = call(plain, [image], weights=project / "weights.irpa")
    built = (build / "matmul.vmfb").read_bytes()
    np.testing.assert_array_equal(call(built, [image], weights=build / "made" / "encoded.irpa"), expected)


def test_more_flags_reach_the_compiler(project: Path, tmp_path: Path) -> None:
    edit(project, "OUTPUT matmul.vmfb", 'OUTPUT matmul.vmfb FLAGS "--no-such-flag=a b"')
    configure(project, tmp_path / "build")
    assert "--no-such-flag=a b" in run("cmake", "--build", tmp_path / "build", ok=False)
    assert not (tmp_path / "build" / "matmul.vmfb").exists()


def test_a_model_that_no_script_matches_fails_the_check(project: Path, tmp_path: Path) -> None:
    model = project / "model.mlir"
    model.write_text(model.read_text().replace("64", "48"))
    configure(project, tmp_path / "build")
    run("cmake", "--build", tmp_path / "build")
    message = failed_check(tmp_path / "build")
    assert "strategy_0" in message


SECOND_SEQUENCE = """
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


@pytest.mark.sweep("landing")
@pytest.mark.parametrize(
    ("sequence", "missing"), [(SECOND_SEQUENCE, "strategy_1"), (WITHOUT_NAME, "1 of 2 apply")], ids=["name", "no-name"]
)
def test_a_script_that_does_not_apply_beside_one_that_does_fails_the_check(
    project: Path, tmp_path: Path, sequence: str, missing: str
) -> None:
    library = project / "tuned" / "library.mlir"
    library.write_text(f"{library.read_text().rstrip().removesuffix('}')}{sequence}}}\n")
    configure(project, tmp_path / "build")
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
    configure(project, tmp_path / "build", f"-DIREE_COMPILE={compiler}")
    assert "error: odd" in run("cmake", "--build", tmp_path / "build", ok=False)
    assert not (tmp_path / "build" / "matmul.vmfb").exists()


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("name", ["it's", "it's ours", "user@host", "a{b"])
def test_folders_with_odd_names_are_used_or_refused(project: Path, tmp_path: Path, name: str) -> None:
    moved = project.rename(tmp_path / name)
    configure(moved, tmp_path / "build")
    possible = "'" in name
    assert ("choose a folder" not in run("cmake", "--build", tmp_path / "build", ok=possible)) == possible


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("TUNED tuned", "TUNED missing", "missing has no flags.txt: write it with"),
        ("TUNED tuned", "", "TUNED is missing"),
        ("TUNED tuned", "TUNED tuned TYPO x", "unknown arguments: TYPO;x"),
        ("TUNED tuned", "TUNED tuned ENCODE model=e.irpa", "PARAMETERS and ENCODE go together"),
        ("TUNED tuned", "TUNED tuned PARAMETERS model=w.irpa", "PARAMETERS and ENCODE go together"),
        ("TUNED tuned", "TUNED tuned PARAMETERS w.irpa ENCODE model=e.irpa", "w.irpa: a file of weights is given as"),
    ],
)
def test_a_wrong_call_is_refused(project: Path, tmp_path: Path, old: str, new: str, message: str) -> None:
    edit(project, old, new)
    output = configure(project, tmp_path / "build", ok=False)
    assert message in " ".join(output.split())


def test_a_given_compiler_is_used(project: Path, tmp_path: Path) -> None:
    configure(project, tmp_path / "build", "-DIREE_COMPILE=/bin/false")
    assert "iree-compile failed" in run("cmake", "--build", tmp_path / "build", ok=False)
