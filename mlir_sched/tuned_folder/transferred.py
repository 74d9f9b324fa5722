"""What the search of a run began from: plain data of the result."""

from collections.abc import Mapping
from dataclasses import dataclass

from mlir_sched.text import counted, seconds


@dataclass(frozen=True)
class SourceResult:
    """A dispatch that was measured before, and of which the search knew candidates.

    Attributes:
        name: Its symbol in the model that it was measured in first.
        description: Its ops with their extents.
        place: Where its measurements come from: ``this store``, ``the given store``, ``your store``, ``other machines``
            (in one of the stores) or ``shipped``.
        processor: What it was measured on.
        threads: Threads that it was measured on.
        candidates: How many of its candidates were used: those that the cost model learnt from, or the best, which were
            tried alone.
    """

    name: str
    description: str
    place: str
    processor: str
    threads: int
    candidates: int


@dataclass(frozen=True)
class TransferResult:
    """What the search of the program began from.

    Attributes:
        searched: Dispatches of the program that were searched.
        with_sources: How many of them began from what others had shown.
        sources: These others, each once.
        accuracy: In which part of the pairs of a dispatch's first candidates the cost model put the faster one first,
            before it knew any candidate of the dispatch: the mean over dispatches, 0.5 for chance; None where no
            dispatch had two such candidates. The candidates were chosen for being fast, so that they are hard to rank.
        judged: Over how many dispatches that is the mean.
        reach_error: By which factor the best candidate's time over the untuned code's differed, of a dispatch, from
            what other dispatches made believe before its first candidate: the geometric mean over dispatches, at least
            1; None where nothing was believed of any that has candidates.
        reach_held: In which part of these dispatches the time was in the 80 % interval of the belief.
        reach_judged: How many these are.
    """

    searched: int
    with_sources: int
    sources: tuple[SourceResult, ...]
    accuracy: float | None
    judged: int
    reach_error: float | None = None
    reach_held: float | None = None
    reach_judged: int = 0

    @property
    def words(self) -> str:
        """What the search began from, in one sentence."""
        if not self.sources:
            return f"none of {self.searched} dispatches begins from what others showed"
        places = ", ".join(dict.fromkeys(source.place for source in self.sources))
        text = (
            f"{self.with_sources} of {self.searched} dispatches begin from what {len(self.sources)} others showed "
            f"({places})"
        )
        if self.accuracy is not None:
            text += (
                f"; of their first candidates the model put the faster one first in {self.accuracy:.0%} of the pairs"
            )
        if self.reach_error is not None and self.reach_held is not None:
            text += (
                f"; what {self.reach_judged} would reach was foreseen within a factor of {self.reach_error:.2f} "
                f"on average, and in {self.reach_held:.0%} of them inside the 80 % interval"
            )
        return text


@dataclass(frozen=True)
class OneShotResult:
    """What a run without a search chose its candidates from.

    Attributes:
        dispatches: Dispatches of the program that have candidates of this run.
        known: Dispatches that have none, as the store had candidates of them that are faster than the untuned code.
        candidates: How many candidates come from where: ``given``, ``templates``, ``cost model``, ``device model`` or,
            where nothing was known, ``random draws``.
        ready_s: Seconds in which the cost model learnt what other dispatches showed; None where it predicts nothing.
    """

    dispatches: int
    known: int
    candidates: Mapping[str, int]
    ready_s: float | None

    @property
    def words(self) -> str:
        """What was chosen from what, in one sentence."""
        number = sum(self.candidates.values())
        origins = ", ".join(f"{origin}: {count}" for origin, count in self.candidates.items())
        dispatches = counted(self.dispatches, "dispatch", "dispatches")
        text = f"no search: {counted(number, 'candidate')} of {dispatches}{f' ({origins})' if origins else ''}"
        text += f", and those that the store had of {self.known} more" if self.known else ""
        return text if self.ready_s is None else f"{text}; the cost model was ready in {seconds(self.ready_s)}"
