"""The example in C: a module inside of an executable, embedded anew when the module changes, and right results."""

import os
import shutil
from pathlib import Path

import pytest
from cmake_builds import configure, quick_compiler, run
from folders import ROOT

EXAMPLE = ROOT / "examples" / "c_program"
RUNTIME = "IREERuntime_DIR"  # CMake reads this variable of the environment, too

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: install one, e.g. gcc")


@pytest.mark.promise
def test_the_module_is_embedded_and_embedded_anew_when_made_again(tmp_path: Path) -> None:
    build, stand_in = tmp_path / "a build", tmp_path / "IREERuntimeConfig.cmake"
    stand_in.write_text("add_library(iree_runtime_runtime INTERFACE IMPORTED)\n")
    options = (f"-D{RUNTIME}={tmp_path}", f"-DIREE_COMPILE={quick_compiler(tmp_path / 'iree')}")
    configure(EXAMPLE, build, *options)
    first = embedded_module(build)
    assert embedded_module(build) == first
    (tmp_path / "iree" / "lib" / "libIREECompiler.so").touch()
    assert embedded_module(build) != first


def embedded_module(build: Path) -> bytes:
    """Build what needs no runtime, and return the module, which must be in the object file."""
    run("cmake", "--build", build, "--target", "matmul_module")
    run("cmake", "--build", build, "--target", "module.o")
    module = (build / "matmul.vmfb").read_bytes()
    (made,) = build.rglob("module.S.o")
    assert module in made.read_bytes()
    return module


@pytest.mark.skipif(RUNTIME not in os.environ, reason=f"set {RUNTIME} to lib/cmake/IREE of an installed IREE")
@pytest.mark.parametrize("device", ["local-sync", "local-task"])
def test_the_program_computes_the_right_product(tmp_path: Path, device: str) -> None:
    configure(EXAMPLE, tmp_path)
    run("cmake", "--build", tmp_path)
    assert "scripts applied: 1" in run("ctest", "--test-dir", tmp_path, "-V")
    assert "wrong elements: 0 of 4096" in run(tmp_path / "matmul", device)
