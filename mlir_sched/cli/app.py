"""The command ``mlir-sched``; everything heavy is imported inside the commands, so that help comes at once."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from mlir_sched import __version__
from mlir_sched.cli.exit import INTERRUPTED, USER_FAULT, command, ignore_interrupts, take_termination_for_interrupt

app = typer.Typer(
    name="mlir-sched",
    help="Tune MLIR programs for this machine: search transform-dialect schedules, prove them, and hand them to IREE.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else there.")]

Modules = Annotated[
    list[str] | None,
    typer.Option(help="Transform module to put before the default ones; repeatable.", metavar="PACKAGE.MODULE:CLASS"),
]


Description = Annotated[Path | None, typer.Option(help="JSON file that says more of the device.", metavar="FILE")]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        help="File with weights that the program reads, as for iree-run-module; repeatable.", metavar="SCOPE=FILE"
    ),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        help="Input that the whole program is checked and timed with, as for iree-run-module; repeatable, in order.",
        metavar="[FUNCTION:]VALUE",
    ),
]
Reference = Annotated[
    list[str] | None,
    typer.Option(
        help="What an output has to be for these inputs, e.g. a framework's result; repeatable, in order.",
        metavar="[FUNCTION:]FILE",
    ),
]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 done, 1 our fault, 2 the user's, 130 interrupted.

    Args:
        arguments: Command-line arguments. By default those of the process, which then belongs to the command: SIGTERM
            does what Ctrl-C does, and neither changes the exit code once the command has ended.
    """
    if arguments is not None:
        return _run(arguments)
    take_termination_for_interrupt()
    try:
        return _run(sys.argv[1:])
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        ignore_interrupts()


def _run(arguments: Sequence[str]) -> int:
    try:
        if empty := _empty_argument(arguments):
            raise typer.BadParameter(empty)
        return app(args=list(arguments), prog_name="mlir-sched", standalone_mode=False) or 0
    except Exception as error:  # the classes have another home in every release of typer
        if type(error).__name__ == "Abort":  # an interrupt outside of a command's body
            return INTERRUPTED
        if not hasattr(error, "format_message"):
            raise
        error.show()  # type: ignore[attr-defined]
        if "--json" in arguments:
            print(json.dumps({"error": error.format_message(), "exit_code": USER_FAULT}, indent=2))
        return USER_FAULT


def _empty_argument(arguments: Sequence[str]) -> str:
    """Return what to say of an argument that is empty, as that of an unset variable; such a path would be the folder
    that the command runs in. What follows ``--`` is iree-compile's.
    """
    own = list(arguments)[: arguments.index("--")] if "--" in arguments else list(arguments)
    for before, argument in zip(["the command", *own], own, strict=False):
        if not argument:
            return f"the argument after {before} is empty; give it, or leave it out"
        if argument.startswith("--") and argument.endswith("=") and argument.count("=") == 1:
            return f"{argument} has no value; give one, or leave the option out"
    return ""


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"mlir-sched {__version__}")
        raise typer.Exit


def _print_cmake_dir(wanted: bool) -> None:
    if wanted:
        print(Path(__file__).resolve().parent.parent / "cmake")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
    cmake_dir: Annotated[
        bool,
        typer.Option(
            "--cmake-dir",
            help="Print the folder of the CMake package (mlir_sched_DIR) and exit.",
            is_eager=True,
            callback=_print_cmake_dir,
        ),
    ] = False,
) -> None:
    del version, cmake_dir


@app.command()
def tune(
    model: Annotated[Path, typer.Argument(help="A program that iree-compile reads.", metavar="MODEL.mlir")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")] = Path("tuned"),
    target: Annotated[
        str, typer.Option(help="What to compile for: llvm-cpu, vulkan[:DEVICE], cuda[:DEVICE].", metavar="NAME")
    ] = "llvm-cpu",
    target_description: Description = None,
    trials: Annotated[
        int | None,
        typer.Option(
            help="Candidates to try over all dispatches; 0: no search, 3 of each dispatch by what is known before.",
            show_default="64 per dispatch",
        ),
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Time for the whole run, instead of --trials or beside --trials 0.")
    ] = None,
    stop_below: Annotated[
        str | None,
        typer.Option(
            help="End the search once the next minute is expected to save less of the program's time: 0.5% or 0.005.",
            metavar="SHARE",
            show_default="search until the budget is spent",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of every choice of the search.")] = 0,
    store: Annotated[
        str | None,
        typer.Option(
            help="Record store: a file or SQLAlchemy URL.", metavar="FILE_OR_URL", show_default="OUTPUT/records.sqlite"
        ),
    ] = None,
    user_store: Annotated[
        str | None,
        typer.Option(
            help="Your store over all runs, to which each also adds what it measures: a file, or off.",
            metavar="FILE|off",
            show_default="in your data folder; off where CI is set",
        ),
    ] = None,
    transfer: Annotated[
        str | None,
        typer.Option(
            help="Begin from candidates of other dispatches: off, auto (stores, what is shipped) or a further store.",
            metavar="off|auto|FILE",
            show_default="off; auto with --trials 0",
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(help="CPU threads the tuned program may run on.", show_default="all cores, as in iree-run-module"),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="local-task: always run on IREE's worker threads.", show_default="local-sync where that is faster"
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh/--resume", help="Ignore earlier runs, or continue where an earlier run ended.")
    ] = False,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Replace the result of another model, and edited or foreign files, in the folder."
        ),
    ] = False,
    predict_variants: Annotated[
        bool,
        typer.Option(help="Compile only the variants of the program, at most two, that other programs speak for."),
    ] = False,
    templates: Annotated[
        bool | None,
        typer.Option(
            help="Try first what transform modules guess from the sizes of a dispatch and of the machine.",
            show_default="no-templates; templates with --trials 0",
        ),
    ] = None,
    strategy: Annotated[
        str, typer.Option(help="Search strategy: evolutionary, random or a registered one.", metavar="NAME")
    ] = "evolutionary",
    cost_model: Annotated[
        str,
        typer.Option(
            help="Cost model: xgboost, random, quantile, gaussian-process, graph (these two with an extra) or a "
            "registered one; none has chosen better than xgboost.",
            metavar="NAME",
        ),
    ] = "xgboost",
    scheduler: Annotated[
        str, typer.Option(help="Task scheduler: gradient, round-robin or a registered one.", metavar="NAME")
    ] = "gradient",
    max_weights: Annotated[
        float | None,
        typer.Option(
            help="Most bytes of weights that calls may read, as a multiple of plain iree-compile's (at least 1).",
            metavar="RATIO",
            show_default="no bound",
        ),
    ] = None,
    check_only: Annotated[
        bool,
        typer.Option(
            "--check-only", help="Run nothing: assemble candidates for a GPU that is not there, estimate their times."
        ),
    ] = False,
    module: Modules = None,
    parameters: Parameters = None,
    inputs: Inputs = None,
    reference: Reference = None,
    as_json: Json = False,
) -> None:
    """Tune a program for this machine.

    Searches for fast schedules, proves that they apply and are right, and writes a folder for iree-compile.
    """
    with command(as_json=as_json, log_folder=output) as out:
        from mlir_sched.cli.tune import run_tune
        from mlir_sched.targets import described_by
        from mlir_sched.tuning.options import TuneOptions, share_of
        from mlir_sched.tuning.search_method import SearchMethod

        options = TuneOptions(
            target=described_by(target, target_description), templates=templates, predict_variants=predict_variants,
            trials=trials, minutes=minutes, stop_below=None if stop_below is None else share_of(stop_below),
            seed=seed, threads=threads, device=device,
            fresh=fresh, replace=replace, max_weights=max_weights, user_store=user_store, transfer=transfer,
            check_only=check_only, inputs=inputs or (), reference=reference or (),
        )  # fmt: skip
        method = SearchMethod.of(strategy, cost_model, scheduler)
        code = run_tune(model, output, options, method, store, module or (), parameters or (), out)
    raise typer.Exit(code)


@app.command()
def inspect(
    path: Annotated[
        str | None,
        typer.Argument(help="A tuned folder, library, script or record store.", metavar="PATH", show_default=False),
    ] = None,
    user_store: Annotated[
        bool, typer.Option("--user-store", help="Show what is in your store over all runs, instead of a PATH.")
    ] = False,
    script: Annotated[
        bool, typer.Option("--script", help="Print only the script; for a store, the best scripts.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show scripts, or a record store.

    For scripts: decisions and provenance; for a store: tasks, best candidates and failures.
    """
    with command(as_json=as_json) as out:
        from mlir_sched.cli.inspect import run_inspect

        code = run_inspect(path, user_store, script, out)
    raise typer.Exit(code)


@app.command()
def replay(
    tuned: Annotated[Path, typer.Argument(help="A folder that tune wrote.", metavar="TUNED")],
    model: Annotated[Path, typer.Argument(help="The program it was tuned for.", metavar="MODEL.mlir")],
    target: Annotated[
        str, typer.Option(help="The folder's target with a device.", metavar="NAME", show_default="the first device")
    ] = "",
    target_description: Description = None,
    module: Modules = None,
    parameters: Parameters = None,
    inputs: Inputs = None,
    reference: Reference = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Folder to write if all numbers are right: with what follows from decisions edited by hand.",
            metavar="FOLDER",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check that a tuned folder still holds.

    Every script must apply, compute the right numbers and win on this machine; exit code 1 if not. A tuned folder is
    code: do not replay what you do not trust.
    """
    with command(as_json=as_json) as out:
        from mlir_sched.cli.replay import run_replay

        values = inputs or (), reference or ()
        code = run_replay(
            tuned, model, module or (), parameters or (), target, target_description, output, *values, out
        )
    raise typer.Exit(code)


@app.command()
def explain(
    tuned: Annotated[Path, typer.Argument(help="A folder that tune wrote.", metavar="TUNED")],
    model: Annotated[Path, typer.Argument(help="The program it was tuned for.", metavar="MODEL.mlir")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")] = Path("explained"),
    parameters: Parameters = None,
    as_json: Json = False,
) -> None:
    """Show what is wrong with variants that were left out.

    Reduces the program to the few ops for which a variant does not compile or computes other numbers, and prints the
    commands that show it.
    """
    with command(as_json=as_json) as out:
        from mlir_sched.cli.explain import run_explain

        code = run_explain(tuned, model, output, parameters or (), out)
    raise typer.Exit(code)


@app.command("compile")
def compile_(
    model: Annotated[Path, typer.Argument(help="A program that iree-compile reads.", metavar="MODEL.mlir")],
    flags: Annotated[
        list[str] | None,
        typer.Argument(help="After --: further flags of iree-compile.", metavar="[-- FLAG...]", show_default=False),
    ] = None,
    tuned: Annotated[Path, typer.Option(help="A folder that tune wrote, wherever it lies.")] = Path("tuned"),
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write.", show_default="MODEL.vmfb")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Write nothing unless the program uses every script, as it was measured.")
    ] = False,
    parameters: Parameters = None,
    encode: Annotated[
        list[str] | None,
        typer.Option(help="File to write: weights as the program's calls read them; repeatable.", metavar="SCOPE=FILE"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compile a program with a tuned folder.

    Says which of the folder's scripts the program uses. A tuned folder is code: do not compile with what you do not
    trust.
    """
    with command(as_json=as_json) as out:
        from mlir_sched.cli.deployment import run_compile

        code = run_compile(
            model, tuned, output or Path(f"{model.stem}.vmfb"), flags or (), strict, parameters or (), encode or (), out
        )
    raise typer.Exit(code)


@app.command()
def relocate(
    tuned: Annotated[Path, typer.Argument(help="A tuned folder that was moved or copied.", metavar="TUNED")],
    as_json: Json = False,
) -> None:
    """Set the paths of a moved folder.

    Afterwards iree-compile @TUNED/flags.txt uses the library in the folder again.
    """
    with command(as_json=as_json) as out:
        from mlir_sched.cli.deployment import run_relocate

        code = run_relocate(tuned, out)
    raise typer.Exit(code)


@app.command()
def doctor(as_json: Json = False) -> None:
    """Show whether this machine can tune.

    Looks at versions, targets, cores and timing noise, and says what to fix; exit code 1 if tuning is not possible.
    """
    with command(as_json=as_json) as out:
        from mlir_sched.cli.doctor import run_doctor

        code = run_doctor(out)
    raise typer.Exit(code)
