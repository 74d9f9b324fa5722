"""Tune a matrix multiplication through the Python API and print what was found."""

import argparse
import tempfile
from pathlib import Path

from mlir_sched import TuneOptions, tune

HERE = Path(__file__).parent


def main() -> None:
    """Tune and print one line for the program and one per dispatch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=HERE / "small_matmul.mlir")
    parser.add_argument("--trials", type=int, default=32)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        result = tune(arguments.model, folder, options=TuneOptions(trials=arguments.trials))

        program = result.program
        print(f"program: {result.speedup:.2f}x of plain iree-compile, with {program.variant} flags on {program.device}")
        for dispatch in result.dispatches:
            if dispatch.tuned is None:
                print(f"{dispatch.name}: unchanged ({dispatch.note})")
                continue
            print(f"{dispatch.name}: {dispatch.speedup:.2f}x with {dispatch.sketch} {dict(dispatch.decisions or {})}")
        print(f"failed candidates: {[dict(d.failures or {}) for d in result.dispatches]}")


if __name__ == "__main__":
    main()
