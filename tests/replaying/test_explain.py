"""A variant that was left out is explained: few ops, few sites, and commands that show the fault."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest
from padded_images import convolved_and_transformed
from registered_rewrites import register

from mlir_sched.compiler.flags import FUSED_PADDING
from mlir_sched.compiler.iree_compile import iree_compile_path
from mlir_sched.errors import UserError
from mlir_sched.program.variants.compile_policy import NO_TIME_TO_COMPILE
from mlir_sched.program.variants.weight_bound import TOO_LARGE
from mlir_sched.replaying.explain import Finding, explain
from mlir_sched.targets.machine import runtime_tool

pytestmark = pytest.mark.landing


def tuned(folder: Path, left_out: dict[str, str]) -> Path:
    """Write what a run leaves that left variants out."""
    made = folder / "tuned"
    made.mkdir()
    (made / "flags.txt").write_text("")
    (made / "summary.json").write_text(json.dumps({"target": "llvm-cpu", "threads": 1, "left_out": left_out}))
    return made


def explained(folder: Path, text: str, left_out: dict[str, str]) -> tuple[Finding, ...]:
    (folder / "model.mlir").write_text(text)
    return explain(tuned(folder, left_out), folder / "model.mlir", folder / "explained")


def shown(command: str) -> subprocess.CompletedProcess[str]:
    """Run one of the commands of a finding."""
    tools = {"iree-compile": str(iree_compile_path()), "iree-run-module": runtime_tool("iree-run-module")}
    program, *arguments = shlex.split(command)
    return subprocess.run([tools[program], *arguments], check=False, capture_output=True, text=True)


def test_a_variant_that_does_not_compile_is_shown_by_the_ops_at_fault(tmp_path: Path) -> None:
    left_out = {"fused-padding": "IREE does not compile it: no", "O3": NO_TIME_TO_COMPILE}
    (finding,) = explained(tmp_path, convolved_and_transformed(), left_out)
    assert finding.variant == "fused-padding"
    assert finding.why.startswith("IREE does not compile it: ")
    assert finding.sites == ("padding(1x18x18x8)",)
    assert finding.ops == 2
    reduced = (tmp_path / "explained" / "fused-padding" / "model.mlir").read_text()
    assert "tensor.pad" in reduced
    assert "conv_2d" not in reduced
    assert shown(finding.commands[0]).returncode
    assert shown(finding.commands[0].replace(FUSED_PADDING, "")).returncode == 0, "the flag is at fault"


PRODUCT = """
  %empty{n} = tensor.empty() : tensor<24x{columns}xf32>
  %init{n} = linalg.fill ins(%zero : f32) outs(%empty{n} : tensor<24x{columns}xf32>) -> tensor<24x{columns}xf32>
  %out{n} = linalg.matmul ins(%{value}, %w{n} : tensor<24x{terms}xf32>, tensor<{terms}x{columns}xf32>)
    outs(%init{n} : tensor<24x{columns}xf32>) -> tensor<24x{columns}xf32>"""


def products() -> str:
    """Return three products, one after the other."""
    sizes, values = [16, 32, 40, 48], ["image", "out0", "out1"]
    body = "".join(
        PRODUCT.format(n=n, columns=sizes[n + 1], terms=sizes[n], value=value) for n, value in enumerate(values)
    )
    arguments = ", ".join(f"%w{n}: tensor<{sizes[n]}x{sizes[n + 1]}xf32>" for n in range(3))
    return f"""func.func @main(%image: tensor<24x16xf32>, {arguments}) -> tensor<24x48xf32> {{
  %zero = arith.constant 0.0 : f32{body}
  return %out2 : tensor<24x48xf32>
}}"""


def test_a_variant_with_wrong_numbers_is_shown_by_a_program_its_inputs_and_its_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register("wrong_products:Family", tmp_path, monkeypatch)
    (finding,) = explained(tmp_path, products(), {"wrong_products": "output 0 differs"})
    assert finding.sites == ("wrong_products(24x40)",)
    assert finding.ops == 1
    compiled, called = map(shown, finding.commands)
    assert compiled.returncode == 0, compiled.stderr
    assert called.returncode, "its results are those that are expected"
    assert "FAILED" in called.stdout + called.stderr


@pytest.mark.parametrize("why", [NO_TIME_TO_COMPILE, f"{TOO_LARGE}its calls read 2.0 MiB of weights"])
def test_what_is_not_at_fault_has_no_finding_and_no_folder_is_overwritten(tmp_path: Path, why: str) -> None:
    assert explained(tmp_path, convolved_and_transformed(), {"fused-padding": why}) == ()
    with pytest.raises(UserError, match="choose another folder"):
        explain(tmp_path / "tuned", tmp_path / "model.mlir", tmp_path)
