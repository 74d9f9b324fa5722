"""What compile does with a tuned folder, wherever it lies, and what relocate changes."""

import json
import re
import shutil
from pathlib import Path

import iree.runtime as rt
import numpy as np
import pytest
from channels_first_networks import network
from command_line import MODEL, Cli, Ended
from folders import ROOT
from iree_cases import FLAGS
from rewriting import library_for, run, write

from mlir_sched.compiler import Shown, compile_showing, compile_to_bytes
from mlir_sched.compiler.flags import read_response_file, write_response_file
from mlir_sched.program.rewrites.folding.folded_constants import FoldedConstants
from mlir_sched.program.rewrites.layout.channels_last import ChannelsLast

pytestmark = pytest.mark.promise

SCALED = """
util.global private @weights = #flow.parameter.named<"model"::"weights"> : tensor<8x12xf32>
util.global private @scale = #flow.parameter.named<"model"::"scale"> : tensor<12xf32>
func.func @main(%rows: tensor<4x8xf32>) -> tensor<4x12xf32> {
  %weights = util.global.load @weights : tensor<8x12xf32>
  %scale = util.global.load @scale : tensor<12xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x12xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x12xf32>) -> tensor<4x12xf32>
  %sums = linalg.matmul ins(%rows, %weights : tensor<4x8xf32>, tensor<8x12xf32>)
                        outs(%start : tensor<4x12xf32>) -> tensor<4x12xf32>
  %scaled = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%sums, %scale : tensor<4x12xf32>, tensor<12xf32>) outs(%empty : tensor<4x12xf32>) {
  ^bb0(%x: f32, %s: f32, %o: f32):
    %y = arith.mulf %x, %s : f32
    linalg.yield %y : f32
  } -> tensor<4x12xf32>
  return %scaled : tensor<4x12xf32>
}
"""
"""A product whose scale can go into the weights."""


@pytest.fixture
def moved(tuned: tuple[Path, Ended], cli: Cli) -> Path:
    """A copy of the tuned folder, as it was made."""
    return Path(shutil.copytree(tuned[0] / "tuned", cli.folder / "moved"))


def test_compile_uses_the_library_of_a_moved_folder(cli: Cli, moved: Path, tuned: tuple[Path, Ended]) -> None:
    flags = moved / "flags.txt"
    flags.write_text(flags.read_text().replace(str((tuned[0] / "tuned").resolve()), "/nowhere"))
    ended = cli("compile", "model.mlir", "--tuned", moved, "-o", "out.vmfb", "--", "--iree-opt-level=O2")
    assert (ended.code, ended.err) == (0, "")
    assert f"scripts of {moved} used: 1 of 1; dispatches with a script: 1" in ended.out
    assert "wrote out.vmfb, to run with --device=local-sync" in ended.out
    rows = np.random.default_rng(0).standard_normal((128, 256)).astype(np.float32)
    expected = run(compile_to_bytes(cli.folder / "model.mlir", FLAGS), [rows])
    np.testing.assert_allclose(run((cli.folder / "out.vmfb").read_bytes(), [rows]), expected, rtol=1e-5)


def test_compile_lists_the_scripts_that_another_model_does_not_use(cli: Cli, moved: Path) -> None:
    (cli.folder / "other.mlir").write_text(MODEL.replace("128x256", "96x256"))
    ended = cli("compile", "other.mlir", "--tuned", moved)
    assert ended.code == 0, ended.err
    assert "tuned for main_dispatch_0_softmax_128x256xf32" in ended.out
    assert "used: 0 of 1; dispatches with a script: 0" in ended.out
    before = (cli.folder / "other.vmfb").read_bytes()
    ended = cli("compile", "other.mlir", "--tuned", moved, "--strict")
    assert ended.code == 1
    assert "nothing was written" in ended.out
    document = json.loads(cli("compile", "other.mlir", "--tuned", moved, "--strict", "--json").out)
    assert (document["output"], document["applied"]) == (None, {})
    (dispatch,) = document["unused"].values()
    assert dispatch.startswith("main_dispatch_0_softmax_128x256xf32")
    assert (cli.folder / "other.vmfb").read_bytes() == before


def test_compile_uses_a_library_that_was_written_by_hand(cli: Cli) -> None:
    by_hand = ROOT / "examples" / "cmake_project"
    text = (by_hand / "model.mlir").read_text()
    (cli.folder / "own.mlir").write_text(text)
    (cli.folder / "other.mlir").write_text(text.replace("64", "72"))
    ended = cli("compile", "own.mlir", "--tuned", by_hand / "tuned", "--strict", "--json")
    (dispatches,) = json.loads(ended.out)["applied"].values()
    assert len(dispatches) == 1
    document = json.loads(cli("compile", "other.mlir", "--tuned", by_hand / "tuned", "--strict", "--json").out)
    assert (document["output"], document["unused"]) == (None, {"strategy_0": ""})


def test_compile_names_dispatches_whose_code_was_not_measured(cli: Cli, moved: Path) -> None:
    library = moved / "library.mlir"
    text, digests = re.subn(r'mlir_sched.code = "[0-9a-f]+"', 'mlir_sched.code = "0"', library.read_text())
    assert digests == 1
    library.write_text(text)
    ended = cli("compile", "model.mlir", "--tuned", moved)
    assert ended.code == 0, ended.err
    assert "not measured: @" in ended.out
    ended = cli("compile", "model.mlir", "--tuned", moved, "-o", "strict.vmfb", "--strict", "--json")
    assert ended.code == 1
    ((names,),) = [json.loads(ended.out)["unmeasured"].values()]
    assert len(names) == 1
    assert not (cli.folder / "strict.vmfb").exists()


def test_strict_writes_only_what_was_measured(cli: Cli, moved: Path) -> None:
    strict = ("compile", "model.mlir", "--tuned", moved, "--strict", "-o", "out.vmfb")
    assert "=host" not in (moved / "flags.txt").read_text()
    ended = cli(*strict, "--json", "--", "--iree-llvmcpu-target-cpu=x86-64-v3", "--iree-opt-level=O2")
    document = json.loads(ended.out)
    assert (ended.code, document["output"]) == (1, None)
    assert [text.partition(",")[0] for text in document["differences"]] == [
        "the code is for the processor x86-64-v3",
        "--iree-opt-level is O2",
    ]
    library = moved / "library.mlir"
    text = library.read_text()
    library.write_text(re.sub(r"iree-compiler 3\.13\.\d+", "iree-compiler 3.12.0", text))
    ended = cli(*strict)
    assert ended.code == 1
    assert "not measured: the compiler is iree-compiler 3.13" in ended.out
    assert "nothing was written" in ended.out
    assert not (cli.folder / "out.vmfb").exists()
    library.write_text(text)
    assert cli(*strict, "--", "--iree-vm-bytecode-module-strip-source-map").code == 0
    assert (cli.folder / "out.vmfb").exists()


def test_what_a_compilation_reads_is_not_written_over(cli: Cli, moved: Path) -> None:
    for output in ("model.mlir", moved / "library.mlir", moved / "flags.txt"):
        before = (cli.folder / output).read_text()
        assert "is read for this" in cli.refused("compile", "model.mlir", "--tuned", moved, "-o", output)
        assert (cli.folder / output).read_text() == before


def test_a_rewrite_of_another_program_is_refused(cli: Cli, moved: Path) -> None:
    model = write(cli.folder, network())
    flags = library_for(ChannelsLast(), model, moved)
    (moved / "flags.txt").write_text(write_response_file(flags))
    ended = cli("compile", model, "--tuned", moved)
    assert ended.code == 0, ended.err
    assert "the whole program is rewritten: channels_last" in ended.out
    write(cli.folder, network().replace("pooling_nchw_max", "pooling_nchw_sum"))
    expected = f"{moved}: its rewrite channels_last was made for another program than {model}; tune this one"
    assert expected in cli.refused("compile", model, "--tuned", moved)


@pytest.fixture
def scaled(cli: Cli) -> Path:
    """A folder for a model with weights in a file, whose rewrite computes other weights from them."""
    numbers = {"weights": np.arange(96, dtype=np.float32).reshape(8, 12), "scale": np.arange(12, dtype=np.float32)}
    rt.save_archive_file(numbers, cli.folder / "weights.irpa")
    folder = cli.folder / "scaled"
    folder.mkdir()
    model = write(cli.folder, SCALED)
    (folder / "flags.txt").write_text(write_response_file(library_for(FoldedConstants(), model, folder)))
    return folder


def test_compile_encodes_weights(cli: Cli, scaled: Path) -> None:
    before = {"seconds": 1.5, "peak_bytes": 3 * 2**20, "resident_bytes": 2**21}
    loading = {"untuned": {**before, "seconds": 0.5}, "tuned": before}
    (scaled / "summary.json").write_text(json.dumps({"threads": 1, "program": {"loading": loading}}))
    files = ("--parameters", "model=weights.irpa", "--encode", "model=encoded.irpa")
    ended = cli("compile", "model.mlir", "--tuned", scaled, "-o", "out.vmfb", *files)
    assert (ended.code, ended.err) == (0, "")
    assert "the whole program is rewritten: folded_constants" in ended.out
    assert "wrote encoded.irpa, to run with --parameters=model=encoded.irpa: " in ended.out
    assert "with 1 computed and 0 original tensors" in ended.out
    assert re.search(r"loading takes [\d.]+ .s, [\d.]+ MiB of memory at most, and [\d.]+ MiB then", ended.out)
    memory = "3.0 MiB of memory at most, and 2.0 MiB then"
    assert f"without encoded weights: 1.5 s, {memory}; untuned: 500 ms, {memory}" in ended.out
    assert cli("compile", "model.mlir", "--tuned", scaled, "-o", "whole.vmfb").code == 0
    rows = [np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)]
    expected = run((cli.folder / "whole.vmfb").read_bytes(), rows, weights=cli.folder / "weights.irpa")
    encoded = run((cli.folder / "out.vmfb").read_bytes(), rows, weights=cli.folder / "encoded.irpa")
    np.testing.assert_array_equal(encoded, expected)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--parameters", "model=weights.irpa"), "give --encode to encode them"),
        (("--encode", "model=encoded.irpa"), "add --parameters model=FILE.irpa"),
        (("--parameters", "model=weights.irpa", "--encode", "encoded.irpa"), "is needed: --encode model=FILE.irpa"),
        (("--parameters", "model=weights.irpa", "--encode", "model=encoded.bin"), "has to end in .irpa"),
        (("--parameters", "model=weights.irpa", "--encode", "model=weights.irpa"), "weights.irpa is read for this"),
        (("--parameters", "model=none.irpa", "--encode", "model=encoded.irpa"), "none.irpa: no such file"),
    ],
)
def test_weights_that_cannot_be_encoded_are_refused(
    arguments: tuple[str, ...], expected: str, cli: Cli, scaled: Path
) -> None:
    weights = (cli.folder / "weights.irpa").read_bytes()
    assert expected in cli.refused("compile", "model.mlir", "--tuned", scaled, *arguments)
    assert not (cli.folder / "model.vmfb").exists()
    assert not (cli.folder / "encoded.irpa").exists()
    assert (cli.folder / "weights.irpa").read_bytes() == weights


def test_relocate_has_plain_iree_compile_use_a_moved_folder(cli: Cli, moved: Path, tuned: tuple[Path, Ended]) -> None:
    assert "run mlir-sched relocate" in cli("inspect", moved).out
    flags = moved / "flags.txt"
    assert str(moved) not in flags.read_text()
    assert "names the library in this folder now" in cli("relocate", moved).out
    assert str(tuned[0]) not in flags.read_text()
    assert "problem" not in cli("inspect", moved).out
    options = read_response_file(flags.read_text())
    assert len(compile_showing(cli.folder / "model.mlir", options, shown=(Shown.SCRIPTS,)).scripts) == 1
    assert json.loads(cli("relocate", moved, "--json").out) == {"changed": False}


def test_a_folder_without_its_library_is_refused(cli: Cli, moved: Path) -> None:
    (moved / "library.mlir").unlink()
    for arguments in (("compile", "model.mlir", "--tuned", moved), ("relocate", moved)):
        assert "its library library.mlir is missing" in cli.refused(*arguments)
    assert not (cli.folder / "model.vmfb").exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("compile", "model.mlir", "--tuned", "nothing"), "nothing: no such folder"),
        (("compile", "model.mlir", "--tuned", "moved", "more.mlir"), "more.mlir: not a flag of iree-compile"),
        (("compile", "model.mlir", "--tuned", "moved", "-o", "no/where.vmfb"), "no/where.vmfb: cannot be written"),
        (("relocate", "."), "not a tuned folder"),
    ],
)
def test_bad_input_is_refused(cli: Cli, moved: Path, arguments: tuple[str, ...], expected: str) -> None:
    del moved
    assert expected in cli.refused(*arguments)
