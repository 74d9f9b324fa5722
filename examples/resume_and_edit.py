"""Edit a number of an emitted script by hand, check what it does, and tune on from there."""

import argparse
import re
import tempfile
from pathlib import Path

from mlir_sched import TuneOptions, parse_traces, replay, tune

HERE = Path(__file__).parent


def with_number(library: str, name: str, value: int) -> str:
    """Return the library with the last constant of a decision changed, as one would in an editor."""
    line = rf'param\.constant (\d+) : i64 \{{[^\n]*mlir_sched\.name = "{name}"\}}'
    *_, last = re.finditer(line, library)
    return library[: last.start(1)] + str(value) + library[last.end(1) :]


def main() -> None:
    """Tune a little, edit, replay, tune on from the edited script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=HERE / "small_matmul.mlir")
    parser.add_argument("--trials", type=int, default=16)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as scratch:
        tuned, again = Path(scratch) / "tuned", Path(scratch) / "again"
        first = tune(arguments.model, tuned, options=TuneOptions(trials=arguments.trials, threads=1))
        print(f"first run: {first.speedup:.2f}x after {first.evaluated} measurements")

        library = tuned / "library.mlir"
        if not library.exists():
            print("no script won here, so there is none to edit")
            return
        before = library.read_text()
        (old,) = parse_traces(before).values()
        # Every sketch of a matrix multiplication tiles the reduction, and 1 divides every extent: a legal edit.
        name = next(name for name in old.values if name.startswith("reduction"))
        library.write_text(with_number(before, name, 1))
        checked = replay(tuned, arguments.model)
        for sequence in checked.sequences:
            print(f"edited script: {sequence.state}; {sequence.note}; {'; '.join(sequence.problems) or 'holds'}")

        edited = list(parse_traces(library.read_text()).values())
        second = tune(
            arguments.model,
            again,
            options=TuneOptions(trials=arguments.trials, seed=1, threads=1),
            store=tuned / "records.sqlite",
            start_from=edited,
        )
        print(f"second run: {second.speedup:.2f}x, {second.evaluated} of {second.trials} candidates measured anew")


if __name__ == "__main__":
    main()
