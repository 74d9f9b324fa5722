"""The clocks that times of programs are read from, with what everybody may ask of them.

A further clock takes one more :class:`Clock` here, its options (``runner/options.py``), its set-up
(``runner/client.py``) and, where programs are called in a way of their own, a bench (``runner/worker/``).
"""

from dataclasses import dataclass
from enum import StrEnum, auto

from mlir_sched.compiler.chain import DEVICE_LENGTH, THREADS_LENGTH


class SpareCores(StrEnum):
    """Which cores other work may use while programs are timed."""

    NONE = auto()
    """None: the device may be software, which takes all cores."""
    BESIDE_CALLS = auto()
    """All that share no physical core with one core, which is left to the calls."""
    UNDISTURBING = auto()
    """Those beside which the cores of timing are as fast as alone, which is tried."""


@dataclass(frozen=True)
class Clock:
    """A way to tell how long programs take.

    Attributes:
        spare_cores: Which cores other work may use meanwhile.
        profiling: What IREE records the dispatches of a program as (``--device_profiling_mode``); empty where it
            records none.
        chain: Dispatches of the chain (``compiler/chain.py``) with which short dispatches are timed; 0 for no chain.
        chained_from: Fewest threads of programs that are timed with a chain.
        pins_cores: Whether programs run on pinned cores, whose speed a calibration kernel watches.
    """

    name: str
    spare_cores: SpareCores
    profiling: str = ""
    chain: int = 0
    chained_from: int = 1
    pins_cores: bool = False

    def chain_length(self, threads: int) -> int:
        """Return the dispatches of the chain for programs on so many threads; 0 for none.

        Times of chains are others than those of single calls, so records of the two are kept apart.
        """
        return self.chain if threads >= self.chained_from else 0


WALL = Clock("wall", SpareCores.UNDISTURBING, "host-execution", chain=THREADS_LENGTH, chained_from=2, pins_cores=True)
"""The host's clock around calls on pinned cores of this machine."""
EVENTS = Clock("events", SpareCores.NONE, "dispatch-events")
"""The timestamps that a device writes around every dispatch, which IREE records."""
CALLS = Clock("calls", SpareCores.BESIDE_CALLS, chain=DEVICE_LENGTH)
"""The host's clock around calls of many dispatches and of one, on a device whose dispatches IREE does not record."""
CLOCKS = (WALL, EVENTS, CALLS)
"""All clocks."""
