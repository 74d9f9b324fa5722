"""``mlir-sched compile`` and ``mlir-sched relocate``: use a tuned folder."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from mlir_sched.cli.exit import DONE, OUR_FAULT, Output
from mlir_sched.deployment import TunedCompilation, compile_tuned, relocate
from mlir_sched.deployment.encoded import EncodedLoading
from mlir_sched.outcome import LoadCost
from mlir_sched.text import mebibytes, say, seconds


def run_compile(
    model: Path,
    tuned: Path,
    output: Path,
    flags: Sequence[str],
    strict: bool,
    parameters: Sequence[str],
    encode: Sequence[str],
    destination: Output,
) -> int:
    """Compile a model with a tuned folder and print which scripts it uses; return the exit code."""
    result = compile_tuned(model, tuned, output, flags=flags, strict=strict, parameters=parameters, encode=encode)
    destination.show(result.to_json, lambda: say(*_lines_of(result, tuned)))
    return OUR_FAULT if result.output is None else DONE


def run_relocate(tuned: Path, destination: Output) -> int:
    """Set the paths of a moved folder and say what was done; return the exit code."""
    changed = relocate(tuned)
    what = "names the library in this folder now" if changed else "is right as it is"
    destination.show(lambda: {"changed": changed}, lambda: say(f"{tuned / 'flags.txt'} {what}"))
    return DONE


def _lines_of(result: TunedCompilation, tuned: Path) -> Iterator[str]:
    for symbol, dispatch in result.unused.items():
        yield f"not used: @{symbol}, tuned for {dispatch or 'a dispatch'}"
    for symbol, names in result.unmeasured.items():
        yield f"not measured: @{symbol} makes other code of @{', @'.join(names)} than was measured; try replay"
    yield from (f"not measured: {text}" for text in result.differences)
    scripts, dispatches = len(result.applied) + len(result.unused), sum(map(len, result.applied.values()))
    if scripts:
        yield f"scripts of {tuned} used: {len(result.applied)} of {scripts}; dispatches with a script: {dispatches}"
    else:
        yield f"{tuned} has no scripts: its flags are used"
    if result.rewrite:
        yield f"the whole program is rewritten: {result.rewrite}"
    if result.output is None:
        yield "nothing was written: with --strict the program has to use every script, and be what was measured"
    else:
        yield f"wrote {result.output}" + (f", to run with --device={result.device}" if result.device else "")
    for file in result.encoded:
        yield (
            f"wrote {file.path}, to run with --parameters={file.scope}={file.path}: {mebibytes(file.bytes)} "
            f"with {file.encoded} computed and {file.kept} original tensors"
        )
    if result.loading is not None:
        yield from _loading_lines(result.loading)


def _loading_lines(loading: EncodedLoading) -> Iterator[str]:
    yield f"loading takes {_cost(loading.encoded)}"
    if before := loading.before:
        yield f"when it was tuned, without encoded weights: {_cost(before.tuned)}; untuned: {_cost(before.untuned)}"


def _cost(cost: LoadCost) -> str:
    sizes = f"{mebibytes(cost.peak_bytes)} of memory at most, and {mebibytes(cost.resident_bytes)} then"
    return f"{seconds(cost.seconds)}, {sizes}"
