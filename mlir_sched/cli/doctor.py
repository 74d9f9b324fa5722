"""``mlir-sched doctor``: prints whether this machine can tune, and what to fix."""

from rich.text import Text

from mlir_sched.cli.exit import DONE, OUR_FAULT, Output
from mlir_sched.preflight.doctor import Diagnosis, Status, diagnose
from mlir_sched.text import console, say, table

_STYLES = {Status.OK: "green", Status.WARNING: "yellow", Status.UNAVAILABLE: "dim", Status.PROBLEM: "red"}


def run_doctor(output: Output) -> int:
    """Look at the machine and print what was found; return the exit code."""
    diagnosis = diagnose()
    output.show(diagnosis.to_json, lambda: print_diagnosis(diagnosis))
    return DONE if diagnosis.can_tune else OUR_FAULT


def print_diagnosis(diagnosis: Diagnosis) -> None:
    """Print the findings, then what to fix."""
    made = table("what", "found", "status")
    for finding in diagnosis.findings:
        made.add_row(finding.name, finding.value, Text(finding.status, style=_STYLES[finding.status]))
    console().print(made)
    say(*(f"fix {finding.name}: {finding.advice}" for finding in diagnosis.findings if finding.advice))
    say("this machine can tune" if diagnosis.can_tune else "this machine cannot tune until the problems are fixed")
