"""A transform module of one's own: how an expert would multiply matrices, in competition with the default space."""

import argparse
import tempfile
from pathlib import Path

from mlir_sched import (
    Dispatch,
    LinalgOp,
    Schedule,
    ScheduleModule,
    Target,
    Trial,
    TuneOptions,
    matchers,
    patterns,
    structures,
    tune,
)

HERE = Path(__file__).parent


class OuterProduct(ScheduleModule):
    """Keeps a tile of the result in registers and adds one outer product of a column and a row after the other."""

    name = "outer_product"

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> structures.Contraction | None:
        """Take plain matrix multiplications with their fill, and nothing fused."""
        del target
        mm = matchers.contraction(op, dispatch)
        return mm if mm and len(mm.tiled) == 2 and len(op.extents) == 3 and mm.beside == (mm.fill,) else None

    def schedule(self, s: Schedule, mm: structures.Contraction) -> None:
        """Tile the result by rows x columns, fuse the fill, walk the reduction by 1, vectorize."""
        m, n = mm.tiled
        rows = s.sample_tile("rows", m, most=16)
        columns = s.sample_tile("columns", n, most=4 * s.lanes(mm.op), unit=s.lanes(mm.op))
        s.require_registers(mm.op, {m: rows, n: columns})
        s.tile(mm.root, {m: rows, n: columns}, fuse=True)
        s.tile(mm.op, {mm.reduction: 1})
        s.vectorize(*mm.ops, then=patterns.CONTRACT)


def main() -> None:
    """Tune with the module in front of the default space, and print how each sketch did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=HERE / "small_matmul.mlir")
    parser.add_argument("--trials", type=int, default=32)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        # Random search gives every sketch the same share of the trials, so that the comparison is fair.
        options = TuneOptions(trials=arguments.trials, threads=1)
        modules, best = [OuterProduct()], dict[str, float]()

        def note(trial: Trial) -> None:
            # What loses is timed, too, but not checked in full: `outcome.valid` holds the timings of checked programs.
            if timing := trial.outcome.timing:
                sketch = trial.trace.sketch
                best[sketch] = max(best.get(sketch, 0.0), timing.ratio)

        result = tune(arguments.model, folder, options=options, modules=modules, strategy="random", callbacks=[note])
        for sketch, ratio in sorted(best.items(), key=lambda item: -item[1]):
            print(f"{sketch:24} {ratio:.2f}x of the untuned dispatch")
        print(f"emitted: {result.dispatches[0].sketch or 'the untuned code'}")


if __name__ == "__main__":
    main()
