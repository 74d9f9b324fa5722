"""Benches that time programs in this process, and short dispatches with a chain (``compiler/chain.py``)."""

from abc import abstractmethod
from typing import Generic, TypeVar

from mlir_sched.runner import protocol
from mlir_sched.runner.program import Program
from mlir_sched.runner.worker.benches.bench import Bench
from mlir_sched.runner.worker.paired_sampling import PairClock, PairSampler
from mlir_sched.runner.worker.wall_clock import longest_chained_s

T = TypeVar("T")


class ChainedBench(Bench, Generic[T]):
    """A bench that times programs in this process; the type parameter is how a program is called to be timed.

    Args:
        chained_s: Seconds per call up to which a dispatch is timed with a chain, if it has one.
    """

    def __init__(self, clock: PairClock[T], chained_s: float) -> None:
        super().__init__()
        self._sampler = PairSampler(clock)
        self._chained_s = chained_s
        self._callees: dict[int, T] = {}

    def load(self, handle: int, program: Program) -> None:
        """Load a program under a handle."""
        self._callees.pop(handle, None)
        super().load(handle, program)

    def drop(self, handle: int) -> None:
        """Release a program."""
        self._callees.pop(handle, None)
        super().drop(handle)

    def pairs(self, request: protocol.SamplePairs) -> tuple[protocol.Pair, ...]:
        """Time a program and the baseline in turns."""
        return self._sampler.pairs(self._callee(protocol.BASELINE), self._callee(request.handle), request)

    @abstractmethod
    def _callee_of(self, handle: int, longest_s: float) -> T:
        """Return how a program is called to be timed: with its chain if a call takes at most ``longest_s`` seconds."""

    @abstractmethod
    def _is_chained(self, callee: T) -> bool:
        """Say whether a program is timed with its chain."""

    def _callee(self, handle: int) -> T:
        """Return how a program is called to be timed, found out when it is first timed."""
        if handle not in self._callees:
            self._callees[handle] = self._callee_of(handle, self._longest_chained_s(handle))
        return self._callees[handle]

    def _longest_chained_s(self, handle: int) -> float:
        """Return the seconds per call up to which a program is timed with its chain."""
        if handle == protocol.BASELINE:
            return self._chained_s
        chained = self._is_chained(self._callee(protocol.BASELINE))
        return longest_chained_s(self._chained_s, baseline_s=self._ready().call_s, baseline_chained=chained)

    def forget_sample(self) -> None:
        """Drop a sample of the baseline that would serve further pairs."""
        self._sampler.forget()

    def _forget(self) -> None:
        super()._forget()
        self._callees.clear()
        self.forget_sample()
