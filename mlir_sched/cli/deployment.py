"""``mlir-sched compile`` and ``mlir-sched relocate``: use a tuned folder."""

from collections.abc import Sequence
from pathlib import Path

from mlir_sched.cli.exit import DONE, OUR_FAULT, Output
from mlir_sched.deployment import TunedCompilation, compile_tuned, relocate
from mlir_sched.text import console


def run_compile(model: Path, tuned: Path, output: Path, flags: Sequence[str], strict: bool, destination: Output) -> int:
    """Compile a model with a tuned folder and print which scripts it uses; return the exit code."""
    result = compile_tuned(model, tuned, output, flags=flags, strict=strict)
    if destination.as_json:
        destination.document(result.to_json())
    else:
        _print_compilation(result, tuned)
    return OUR_FAULT if result.output is None else DONE


def run_relocate(tuned: Path, destination: Output) -> int:
    """Set the paths of a moved folder and say what was done; return the exit code."""
    changed = relocate(tuned)
    if destination.as_json:
        destination.document({"changed": changed})
    else:
        what = "names the library in this folder now" if changed else "is right as it is"
        console().print(f"{tuned / 'flags.txt'} {what}", soft_wrap=True, highlight=False)
    return DONE


def _print_compilation(result: TunedCompilation, tuned: Path) -> None:
    out = console()
    for symbol, dispatch in result.unused.items():
        out.print(f"not used: @{symbol}, tuned for {dispatch or 'a dispatch'}", soft_wrap=True, highlight=False)
    for symbol, names in result.unmeasured.items():
        text = f"not measured: @{symbol} makes other code of @{', @'.join(names)} than was measured; try replay"
        out.print(text, soft_wrap=True, highlight=False)
    for text in result.differences:
        out.print(f"not measured: {text}", soft_wrap=True, highlight=False)
    scripts, dispatches = len(result.applied) + len(result.unused), sum(map(len, result.applied.values()))
    lines = [f"scripts of {tuned} used: {len(result.applied)} of {scripts}; dispatches with a script: {dispatches}"]
    if not scripts:
        lines = [f"{tuned} has no scripts: its flags are used"]
    if result.rewrite:
        lines.append(f"the whole program is rewritten: {result.rewrite}")
    if result.output is None:
        lines.append("nothing was written: with --strict the program has to use every script, and be what was measured")
    else:
        device = f", to run with --device={result.device}" if result.device else ""
        lines.append(f"wrote {result.output}{device}")
    for line in lines:
        out.print(line, soft_wrap=True, highlight=False)
