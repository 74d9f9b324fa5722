"""A transform module of one's own: how an expert would multiply matrices, in competition with the default space."""

import argparse
import tempfile
from pathlib import Path

from mlir_sched import Dispatch, LinalgOp, OpKind, RecordStore, Schedule, ScheduleModule, Target, TuneOptions, tune
from mlir_sched.transform_scripts.common.clean_up import clean_up

HERE = Path(__file__).parent


class OuterProduct(ScheduleModule):
    """Keeps a tile of the result in registers and adds one outer product of a column and a row after the other."""

    name = "outer_product"

    def applies(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> bool:
        """Take plain matrix multiplications with their fill, and nothing fused."""
        del target
        return op.kind is OpKind.CONTRACTION and len(op.extents) == 3 and len(dispatch.ops) == 2

    def schedule(self, s: Schedule, op: LinalgOp) -> None:
        """Tile the result by rows x columns, fuse the fill, walk the reduction by 1, vectorize."""
        m, n, _ = s.ops[op.index].tile
        lanes = s.target.vector_elements(4)
        (rows,) = s.sample_perfect_tile("rows", m, 1, max_innermost=16)
        (columns,) = s.sample_perfect_tile("columns", n, 1, max_innermost=4 * lanes, multiple_of=lanes)
        accumulators = rows * -(-columns // lanes)
        s.require(accumulators <= 24, f"{accumulators} accumulators do not fit the registers")
        s.fuse_producers(s.ops[op.index], [rows, columns, 0])
        clean_up(s)
        s.rematch()
        product, _ = s.tile(s.ops[op.index], [0, 0, 1])
        s.vectorize(product)
        s.vectorize_fills()
        s.emit.apply_patterns("vector.reduction_to_contract", "vector.transfer_permutation_patterns")


def main() -> None:
    """Tune with the module in front of the default space, and print how each sketch did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=HERE / "small_matmul.mlir")
    parser.add_argument("--trials", type=int, default=32)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        # Random search gives every sketch the same share of the trials, so that the comparison is fair.
        options = TuneOptions(trials=arguments.trials, strategy="random")
        result = tune(arguments.model, folder, options=options, modules=[OuterProduct()])

        best: dict[str, float] = {}
        with RecordStore.open(Path(folder) / "records.sqlite") as store:
            records = [r for t in store.tasks() for c in store.contexts(t.key) for r in store.records(t.key, c)]
        for record in records:
            if record.trace is not None and record.outcome.timing is not None:
                ratio = record.outcome.timing.ratio
                best[record.trace.sketch] = max(best.get(record.trace.sketch, 0.0), ratio)
        for sketch, ratio in sorted(best.items(), key=lambda item: -item[1]):
            print(f"{sketch:24} {ratio:.2f}x of the untuned dispatch")
        print(f"emitted: {result.dispatches[0].sketch or 'the untuned code'}")


if __name__ == "__main__":
    main()
