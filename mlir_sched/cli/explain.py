"""``mlir-sched explain``: prints what is wrong with the variants that a run left out."""

from collections.abc import Sequence
from pathlib import Path

from mlir_sched.cli.exit import DONE, Output
from mlir_sched.cli.progress import progress_view
from mlir_sched.replaying.explain import Finding, explain
from mlir_sched.text import say

NONE = "no variant was left out because it does not compile or computes other numbers"
"""What is printed where there is nothing to explain."""


def run_explain(tuned: Path, model: Path, folder: Path, parameters: Sequence[str], output: Output) -> int:
    """Explain the variants that a run left out, and print what is found; return the exit code."""
    with progress_view() as progress:
        findings = explain(tuned, model, folder, parameters=parameters, progress=progress)
    lines = [line for finding in findings for line in lines_of(finding)] or [NONE]
    output.show(lambda: [finding.to_json() for finding in findings], lambda: say(*lines))
    return DONE


def lines_of(finding: Finding) -> list[str]:
    """Return the lines on a variant: what is wrong, what suffices for that, and the commands that show it."""
    if not finding.why:
        return [f"{finding.variant}: compiles here, and computes the same numbers as plain iree-compile"]
    sites = f"; these sites suffice: {', '.join(finding.sites)}" if finding.sites else ""
    return [f"{finding.variant}: {finding.why}", f"  shown by {finding.ops} ops{sites}", *finding.commands]
