"""Explains why variants of a program were left out: each is a finding about a rewrite, or about IREE.

Of every variant that does not compile, or computes other numbers, the model is reduced to the few ops that show the
fault, and the variant to the fewest sites. What is left is written to files, with the commands that show the fault.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shutil import copyfile
from typing import Any

import numpy as np

from mlir_sched.compiler.flags import library_flags
from mlir_sched.compiler.worker_process import run_isolated
from mlir_sched.errors import MlirSchedError, UserError
from mlir_sched.processes.executable import run_program
from mlir_sched.processes.limits import ChildLimits
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.program.halving import fewest, most_tries, without_faults
from mlir_sched.program.plan import KeptSite, Plan
from mlir_sched.program.rewrites.site_rewrite import SiteRewrite
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.variants.compile_policy import NOT_TRIED
from mlir_sched.program.variants.early_decisions import DOMINATED
from mlir_sched.program.variants.mending import last_first
from mlir_sched.program.variants.programs import MeasuredPrograms, Source
from mlir_sched.program.variants.rewritten import applying_variant, flagged_variants, placed_sites, rewriting
from mlir_sched.program.variants.weight_bound import TOO_LARGE
from mlir_sched.program.whole_program import checks_of
from mlir_sched.runner import RunnerOptions
from mlir_sched.runner.checks.inputs import make_inputs
from mlir_sched.targets import detect_target
from mlir_sched.targets.machine import runtime_tool
from mlir_sched.targets.target import LOCAL_SYNC, Target
from mlir_sched.tasks.model import EXTRACTION_LIMITS, require_program
from mlir_sched.tensors.parameters import parameter_files
from mlir_sched.tuned_folder.folder import read_tuned_folder, require_usable_fields
from mlir_sched.tuned_folder.names import LIBRARY
from mlir_sched.tuning.progress import Progress, ProgressCallback, silent

MODEL, COMPILED = "model.mlir", "model.vmfb"
"""Names of the reduced program and of its compiled module."""
_NUMBER = "mlir_sched.program.worker.cutting:number_of_ops"
_CUT = "mlir_sched.program.worker.cutting:cut"
_RUN = ChildLimits(600.0, 1 << 32)


@dataclass(frozen=True)
class Finding:
    """Why a variant of a program was left out.

    Attributes:
        variant: Name of the variant.
        why: What is wrong; empty where nothing is, on this machine at present.
        sites: The sites that suffice for the fault, by name; none where the variant has no sites.
        ops: Ops of the reduced program.
        commands: The commands that show the fault: the program is compiled, and run if it compiles.
    """

    variant: str
    why: str
    sites: tuple[str, ...] = ()
    ops: int = 0
    commands: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON data."""
        return asdict(self)


def explain(
    tuned: str | Path,
    model: str | Path,
    output: str | Path,
    *,
    parameters: Sequence[str] = (),
    progress: ProgressCallback = silent,
) -> tuple[Finding, ...]:
    """Return a finding for every variant that a run left out as it does not compile or computes other numbers.

    Args:
        tuned: The folder that the run wrote.
        output: Folder for the reduced programs; it must not exist, or be empty.
        parameters: Files with the model's weights, each as ``scope=path``; by default those it was tuned with.

    Raises:
        UserError: The folder, the model or the output cannot be used.
    """
    folder, path, into = read_tuned_folder(Path(tuned)), require_program(model), Path(output)
    require_usable_fields(folder.summary)
    if into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise UserError(f"{into}: there is something already; choose another folder with -o")
    weights = parameter_files(parameters or folder.summary.get("parameters", ()))
    target = detect_target(str(folder.summary.get("target", "llvm-cpu")), folder.threads)
    progress(Progress("looking for the variants that were left out"))
    wanted = [plan for plan in _plans(path, target) if _was_tried(plan, folder.summary.get("left_out") or {})]
    found = []
    source = Source(path, target, weights)
    with MeasuredPrograms.open(source, RunnerOptions.for_device(target.driver).first_look) as programs:
        for plan in wanted:
            progress(Progress(f"reducing {plan.name}"))
            case = _Case(plan, programs)
            found.append(case.finding(into / re.sub(r"[^\w.+-]", "_", plan.name)))
    return tuple(found)


def _plans(path: Path, target: Target) -> list[Plan]:
    """Return the plans that apply to a program, but for the default."""
    with rewriting(path, target) as rewritten:
        return [variant.plan for variant in (*flagged_variants(target)[1:], *rewritten().variants)]


def _was_tried(plan: Plan, left_out: Mapping[str, str]) -> bool:
    """Say whether a run that left variants out, for reasons by name, tried a plan."""
    why = str(left_out.get(plan.name, NOT_TRIED[0]))
    return why not in NOT_TRIED and not why.startswith((DOMINATED.format(""), TOO_LARGE))


@dataclass(frozen=True)
class _Case:
    """A plan that is at fault in a program."""

    plan: Plan
    programs: MeasuredPrograms

    @property
    def path(self) -> Path:
        """The program."""
        return self.programs.source.path

    @property
    def target(self) -> Target:
        """What it is compiled for."""
        return self.programs.source.target

    def finding(self, folder: Path) -> Finding:
        """Return what is found about the plan, and write the reduced program to a folder."""
        kind, why = self.fault(self.path, self.plan)
        if not kind:
            return Finding(self.plan.name, "")
        with temporary_folder() as scratch:
            reduced, ops = self._reduced(kind, Path(scratch))
            plan, sites = self._sites(kind, reduced)
            folder.mkdir(parents=True)
            copyfile(reduced, folder / MODEL)
        return Finding(self.plan.name, why, tuple(site.name for site in sites), ops, self._commands(folder, plan))

    def fault(self, path: Path, plan: Plan) -> tuple[str, str]:
        """Return what is wrong with a program by a plan, as a kind and in words; empty where nothing is.

        A plan that does not apply to a program, and a program that cannot be judged, have no fault.
        """
        programs = self._programs_of(path)
        try:
            default = self._default(programs)
            variant = applying_variant(path, self.target, plan)
        except MlirSchedError:
            return "", ""
        if variant is None:
            return "", ""
        attempt = programs.attempt(variant, default.model)
        if attempt.built is None:
            return ("compiling", attempt.why) if attempt.diagnostics else ("", "")
        return self._wrong(default, attempt.built)

    def _programs_of(self, path: Path) -> MeasuredPrograms:
        """Return what makes the programs of a part of the program."""
        return replace(self.programs, source=replace(self.programs.source, path=path))

    def _default(self, programs: MeasuredPrograms) -> BuiltVariant:
        """Return a program without any plan, repaired where IREE is known to compile it wrong."""
        plain = applying_variant(programs.source.path, self.target, Plan())
        assert plain is not None
        return programs.first(programs.build(plain))

    def _wrong(self, default: BuiltVariant, built: BuiltVariant) -> tuple[str, str]:
        try:
            _, failed = self.programs.time([default, built])
        except MlirSchedError:
            return "", ""
        why = failed.get(built.variant.name, "")
        return ("running", why) if why else ("", "")

    def _reduced(self, kind: str, scratch: Path) -> tuple[Path, int]:
        """Return a program of few ops that shows a fault of a kind, and the number of the ops."""
        number = run_isolated(self.target.flags, _NUMBER, str(self.path), limits=EXTRACTION_LIMITS)

        def shows(chosen: Sequence[int]) -> bool:
            part = self._part(chosen, scratch)
            return part is not None and self.fault(part, self.plan)[0] == kind

        everything = list(range(number))
        if not shows(everything):
            return self.path, number
        chosen = fewest(number, shows)
        part = self._part(chosen, scratch)
        assert part is not None
        return part, len(chosen)

    def _part(self, chosen: Sequence[int], scratch: Path) -> Path | None:
        """Write a program of some ops; None where it cannot be one of its own."""
        try:
            text = run_isolated(self.target.flags, _CUT, str(self.path), list(chosen), limits=EXTRACTION_LIMITS)
        except MlirSchedError:
            return None
        path = scratch / f"part{chosen[0]}-{len(chosen)}.mlir"
        path.write_text(text)
        return path

    def _sites(self, kind: str, path: Path) -> tuple[Plan, tuple[KeptSite, ...]]:
        """Return the fewest sites of a program that show a fault of a kind, and a plan that changes these alone."""
        if not any(isinstance(change, SiteRewrite) for change in self.plan.changes):
            return self.plan, ()
        placed = last_first(placed_sites(path, self.target, self.plan))
        every = tuple(KeptSite(site.rewrite, site.label) for site in placed)

        def changing(sites: Sequence[KeptSite]) -> Plan:
            return self.plan.keeping(site for site in every if site not in sites)

        def works(sites: Sequence[KeptSite]) -> bool:
            return self.fault(path, changing(sites))[0] != kind

        good = without_faults(every, works, most_tries(len(every)))
        faulty = tuple(site for site in every if site not in good)
        if faulty != every and works(faulty):
            faulty = every
        return changing(faulty), faulty

    def _commands(self, folder: Path, plan: Plan) -> tuple[str, ...]:
        """Write what a reduced program needs beside itself, and return the commands that show its fault.

        The second command compares the results with those of the untuned program.
        """
        path = folder / MODEL
        variant, flags = applying_variant(path, self.target, plan), (*self.target.flags, *plan.flags)
        if variant is not None and variant.rewrite is not None:
            (folder / LIBRARY).write_text(variant.library)
            flags = (*flags, *library_flags((folder / LIBRARY).resolve()))
        default = self._default(self._programs_of(path))
        entry = default.model.entries[0]
        inputs = make_inputs(entry.inputs, checks_of(default.model, entry)[0])
        files = {f"input{number}.npy": array for number, array in enumerate(inputs)}
        for name, array in files.items():
            np.save(folder / name, array)
        given = [f"--input=@{folder / name}" for name in files]
        given += [f"--parameters={file}" for file in self.programs.source.parameters]
        called = [f"--device={LOCAL_SYNC}", f"--function={entry.name}", *given]
        expected = [folder / f"expected{number}.npy" for number in range(len(entry.outputs))]
        _run(folder, default.vmfb, [*called, *(f"--output=@{file}" for file in expected)])
        compiled = ["iree-compile", *flags, str(path), "-o", str(folder / COMPILED)]
        called += [f"--expected_output=@{file}" for file in expected]
        return shlex.join(compiled), shlex.join(["iree-run-module", f"--module={folder / COMPILED}", *called])


def _run(folder: Path, vmfb: bytes, arguments: Sequence[str]) -> None:
    """Run a compiled program by IREE's own tool.

    Raises:
        UserError: The tool is missing.
        MlirSchedError: It fails.
    """
    untuned = folder / "untuned.vmfb"
    untuned.write_bytes(vmfb)
    ended = run_program([runtime_tool("iree-run-module"), f"--module={untuned}", *arguments], _RUN)
    untuned.unlink()
    if ended.code:
        raise MlirSchedError(f"iree-run-module fails on the reduced program: {ended.errors.decode(errors='replace')}")
