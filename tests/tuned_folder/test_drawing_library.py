"""Pictures look the same whatever settings of matplotlib lie around, and a picture that fails costs nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

from mlir_sched.tuned_folder import report
from mlir_sched.tuned_folder.manifest import Source
from mlir_sched.tuned_folder.names import CURVE, REPORT
from mlir_sched.tuned_folder.pictures import Curve, draw_dispatches

CURVES = [Curve("dispatch", (1.0, 2.0))]
DRAW = """
from mlir_sched.tuned_folder.pictures import Curve, draw_dispatches
picture = draw_dispatches([Curve("dispatch", (1.0, 2.0))])
import matplotlib
print(len(picture), matplotlib.rcParams["text.usetex"])
"""
PLANTED = "text.usetex: True\ntext.latex.preamble: \\input{/nowhere}\nfigure.dpi: 7\nlines.linewidth: 40\n"


@pytest.mark.promise
@pytest.mark.sweep("landing")
@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("working directory", PLANTED.encode()),
        ("working directory", b"\xff\xfe not text"),
        ("user", PLANTED.encode()),
        ("variable", PLANTED.encode()),
    ],
)
def test_settings_in_files_change_nothing(place: str, text: bytes, tmp_path: Path) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    (home / "matplotlib").mkdir(parents=True)
    here.mkdir()
    folders = {"working directory": here, "user": home / "matplotlib", "variable": tmp_path}
    (folders[place] / "matplotlibrc").write_bytes(text)
    variables = {"XDG_CONFIG_HOME": str(home), "PATH": "/usr/bin:/bin", "HOME": str(Path.home())}
    if place == "variable":
        variables["MATPLOTLIBRC"] = str(tmp_path / "matplotlibrc")
    drawn = subprocess.run(
        [sys.executable, "-c", DRAW], cwd=here, env=variables, capture_output=True, text=True, check=False
    )
    assert drawn.returncode == 0, drawn.stderr
    assert drawn.stdout.split() == [str(len(draw_dispatches(CURVES))), "False"]


def test_settings_of_a_process_that_draws_itself_change_nothing_and_stay() -> None:
    expected = draw_dispatches(CURVES)
    with mpl.rc_context({"text.usetex": True, "lines.linewidth": 40.0}):
        assert draw_dispatches(CURVES) == expected
        assert mpl.rcParams["lines.linewidth"] == 40.0


def test_a_picture_that_cannot_be_drawn_costs_the_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> bytes:
        raise RuntimeError("no font")

    monkeypatch.setattr(report, "draw_dispatches", fail)
    monkeypatch.setattr(report, "page", lambda _, picture: f"page with {len(picture)} bytes")
    (tmp_path / CURVE).write_bytes(b"of an earlier run")
    report.write_report(tmp_path, Source("", "model.mlir", "llvm-cpu"), None, CURVES)  # type: ignore[arg-type]
    assert (tmp_path / REPORT).read_text() == "page with 0 bytes"
    assert not (tmp_path / CURVE).exists()
    assert report._image("Speed-up", b"") == "<p>No picture could be drawn: speed-up.</p>"
