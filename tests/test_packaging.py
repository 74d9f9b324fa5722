"""What a built wheel contains, and what importing the package costs."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from folders import ROOT

from mlir_sched import __version__

pytestmark = pytest.mark.promise

CODE_FOLDERS = ("transform_scripts", "search", "models")
HEAVY = ("iree", "numpy", "sqlalchemy", "pydantic", "xgboost", "matplotlib", "torch")
WITH_EXTRAS = tuple(f"mlir_sched.models.{name}" for name in ("gaussian_process", "graph_model", "torch_state"))
"""Modules that import what only an extra installs."""


def source_files() -> set[str]:
    """Return what belongs into the wheel, by its path there."""
    folders = {ROOT / "mlir_sched": "mlir_sched"} | {ROOT / name: f"mlir_sched/{name}" for name in CODE_FOLDERS}
    return {
        f"{package}/{file.relative_to(folder).as_posix()}"
        for folder, package in folders.items()
        for file in folder.rglob("*")
        if file.is_file() and (file.name.endswith((".py", ".mlir", ".cmake", ".jsonl.gz")) or file.name == "py.typed")
    }


def test_the_wheel_has_every_module_fragment_cmake_script_and_the_type_marker(wheel: Path) -> None:
    contents = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("mlir_sched/")}
    expected = source_files()
    assert {"mlir_sched/py.typed", "mlir_sched/cmake/mlir_sched-config.cmake"} <= expected
    assert all(any(name.startswith(f"mlir_sched/{folder}/") for name in expected) for folder in CODE_FOLDERS)
    assert contents == expected


def test_the_wheel_has_measured_candidates_of_less_than_a_megabyte(wheel: Path) -> None:
    found = [each for each in zipfile.ZipFile(wheel).infolist() if each.filename.startswith("mlir_sched/corpus/data/")]
    assert len(found) > 30
    assert sum(each.compress_size for each in found) < 1_000_000


def test_the_wheel_has_the_licence_and_the_command(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (entry_points,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
    (licence,) = (name for name in archive.namelist() if name.endswith("LICENSE"))
    assert "mlir-sched = mlir_sched.cli:main" in archive.read(entry_points).decode()
    assert "LLVM Exceptions to the Apache 2.0 License" in archive.read(licence).decode()


def test_the_version_of_the_wheel_is_that_of_the_package_and_of_its_cmake_files(wheel: Path) -> None:
    text = zipfile.ZipFile(wheel).read("mlir_sched/cmake/mlir_sched-config-version.cmake").decode()
    assert f'set(PACKAGE_VERSION "{__version__}")' in text
    assert wheel.name.split("-")[1] == __version__


def test_every_module_of_the_wheel_can_be_imported_outside_of_the_checkout(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    program = f"""
import importlib, pathlib, pkgutil, sys
sys.path.insert(0, {str(site)!r})
import mlir_sched
for module in pkgutil.walk_packages(mlir_sched.__path__, "mlir_sched."):
    if not module.name.endswith("__main__") and module.name not in {WITH_EXTRAS!r}:
        assert importlib.import_module(module.name).__file__.startswith({str(site)!r}), module.name
print("imported")
"""
    result = run_python(program, tmp_path)
    assert result.stdout == "imported\n", result.stderr


def test_importing_the_package_loads_nothing_heavy(tmp_path: Path) -> None:
    result = run_python(f"import sys, mlir_sched; print(sorted({set(HEAVY)} & set(sys.modules)))", tmp_path)
    assert result.stdout == "[]\n", result.stderr


def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    program = f"""
import sys
sys.argv = ["mlir-sched", "--help"]
from mlir_sched.cli import main
try:
    code = main()
except SystemExit as exit:
    code = exit.code
print(code or 0, sorted({set(HEAVY)} & set(sys.modules)), file=sys.stderr)
"""
    result = run_python(program, tmp_path)
    assert "tune" in result.stdout, result.stderr
    assert result.stderr.splitlines()[-1] == "0 []"


def run_python(program: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a program in another folder, so that the checkout is not on its path."""
    return subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)


def test_every_public_name_is_found_and_tune_stays_the_function(tmp_path: Path) -> None:
    program = """
import mlir_sched
import mlir_sched.pipeline
assert callable(mlir_sched.tune), mlir_sched.tune
assert all(getattr(mlir_sched, name) is not None for name in mlir_sched.__all__)
assert set(mlir_sched.__all__) <= set(dir(mlir_sched))
try:
    mlir_sched.no_such_name
except AttributeError as error:
    print(error)
"""
    result = run_python(program, tmp_path)
    assert result.stdout == "module 'mlir_sched' has no attribute 'no_such_name'\n", result.stderr
