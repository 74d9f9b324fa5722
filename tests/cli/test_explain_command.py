"""``explain`` says of every variant that was left out what is wrong, or that nothing is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli

from mlir_sched.cli.explain import NONE
from mlir_sched.replaying.explain import Finding

FINDINGS = (
    Finding("fused-padding", "IREE does not compile it: no", ("padding(8x8)",), 2, ("iree-compile a", "run b")),
    Finding("O3", ""),
)


@pytest.mark.parametrize("findings", [FINDINGS, ()])
def test_findings_are_printed_with_their_commands(
    findings: tuple[Finding, ...], cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []

    def explained(*paths: Path, **_: object) -> tuple[Finding, ...]:
        given.append(paths)
        return findings

    monkeypatch.setattr("mlir_sched.cli.explain.explain", explained)
    ended = cli("explain", "tuned", "model.mlir", "-o", "there")
    assert (ended.code, given) == (0, [(Path("tuned"), Path("model.mlir"), Path("there"))])
    if findings:
        assert ended.out.splitlines() == [
            "fused-padding: IREE does not compile it: no",
            "  shown by 2 ops; these sites suffice: padding(8x8)",
            "iree-compile a",
            "run b",
            "O3: compiles here, and computes the same numbers as plain iree-compile",
        ]
    else:
        assert ended.out == f"{NONE}\n"
    assert [each["variant"] for each in json.loads(cli("explain", "a", "b", "--json").out)] == [
        finding.variant for finding in findings
    ]


def test_a_folder_that_is_missing_is_the_users_error(cli: Cli) -> None:
    assert cli.refused("explain", "missing", "model.mlir") == "error: missing: no such folder"
