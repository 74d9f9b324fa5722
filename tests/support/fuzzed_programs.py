"""A small program of the fuzzer, with the results that right code gives."""

from __future__ import annotations

import numpy as np

from benchmarks.fuzz.draft import DTYPES, Array, Draft
from benchmarks.fuzz.programs import RandomProgram, finished
from benchmarks.fuzz.reductions import multiplied


def product_of(kind: str) -> RandomProgram:
    """Return a product of matrices, whose inputs are no whole numbers where they are floats."""
    draft = Draft(np.random.default_rng(3), whole=False)
    made = multiplied(draft, draft.argument(13, 65, kind=kind))
    assert made is not None
    return finished(draft, [made])


def results_of(program: RandomProgram) -> list[Array]:
    """Return what right code gives."""
    pairs = zip(program.evaluate(), program.outputs, strict=True)
    return [array.astype(DTYPES[value.kind]) for array, value in pairs]
