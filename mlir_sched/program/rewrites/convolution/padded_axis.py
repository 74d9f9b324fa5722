"""One spatial dimension of a convolution over a zero-padded image: which taps meet the image for which result."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, pairwise

MIN_CUT = 0.015
"""Least share of the products that one more part has to leave out: every part is one more dispatch to run and tune."""


@dataclass(frozen=True)
class PaddedAxis:
    """One spatial dimension: ``result[o]`` sums ``image[stride * o + dilation * t - low] * filter[t]``.

    Attributes:
        pixels: Size of the image without padding.
        taps: Size of the filter.
        results: Size of the result.
        stride: Pixels from one result to the next.
        dilation: Pixels from one tap to the next.
        low: Padding in front of the image.
    """

    pixels: int
    taps: int
    results: int
    stride: int
    dilation: int
    low: int

    def taps_of(self, result: int) -> range:
        """Return the taps that meet the image; ``range(0)`` when all of them meet padding."""
        start = self.stride * result - self.low
        first = max(0, -(start // self.dilation))
        end = min(self.taps, (self.pixels - 1 - start) // self.dilation + 1)
        return range(first, end) if first < end else range(0)

    def pixels_of(self, run: ResultRun) -> range:
        """Return the pixels that a run's taps meet, from the first to the last, including pixels of the padding."""
        first = self.stride * run.results.start + self.dilation * run.taps.start - self.low
        last = self.stride * (run.results.stop - 1) + self.dilation * (run.taps.stop - 1) - self.low
        return range(first, last + 1)

    def runs(self) -> list[ResultRun]:
        """Return all results in runs with their taps; each cut between two runs saves :data:`MIN_CUT` or more."""
        groups = groupby(range(self.results), key=self.taps_of)
        runs = [ResultRun(range((found := list(results))[0], found[-1] + 1), taps) for taps, results in groups]
        while len(runs) > 1:
            costs = [a.joined(b).products - a.products - b.products for a, b in pairwise(runs)]
            at = min(range(len(costs)), key=costs.__getitem__)
            if costs[at] >= MIN_CUT * self.results * self.taps:
                break
            runs[at : at + 2] = [runs[at].joined(runs[at + 1])]
        return runs

    def left_out(self) -> float:
        """Return the share of the products that the runs leave out, 0 to 1."""
        return 1 - sum(run.products for run in self.runs()) / (self.results * self.taps)


@dataclass(frozen=True)
class ResultRun:
    """Adjacent results, and the taps that are summed for each of them."""

    results: range
    taps: range

    @property
    def products(self) -> int:
        """Products along the dimension."""
        return len(self.results) * len(self.taps)

    def joined(self, following: ResultRun) -> ResultRun:
        """Return this run and the following one as one run, with all taps from the first to the last of both."""
        taps = [run.taps for run in (self, following) if run.taps]
        hull = range(min(t.start for t in taps), max(t.stop for t in taps)) if taps else range(0)
        return ResultRun(range(self.results.start, following.results.stop), hull)
