"""The interface of a kind of target."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mlir_sched.errors import UserError
from mlir_sched.targets.target import Target

DEFAULT = "default"
"""Name of the variant without flags: the default code of ``iree-compile``."""
DATA_TILING = "data-tiling"
"""Name of the variant with IREE's own packing of matrices."""


def device_decides() -> int:
    """Return 1, the number of threads of programs whose device chooses its own."""
    return 1


def refuse_threads(name: str, threads: int) -> None:
    """Refuse a number of threads for the target with the given name, whose device chooses its own.

    Raises:
        UserError: ``threads`` is not what :func:`device_decides` returns.
    """
    if threads != device_decides():
        raise UserError(f"the target {name} takes no number of threads: its device decides; got {threads}")


@dataclass(frozen=True)
class TargetKind:
    """What a named target provides.

    Attributes:
        detect: Describes this machine as the target, for programs that may use the given number of threads and run on
            the device with the given name, or on the best one for an empty name. Raises a UserError when the machine
            has no such device (the message says what is missing) or the number of threads is impossible.
        variants: Compiler flags that compete with scripts, by the name of the variant, :data:`DEFAULT` first.
        facts: Properties of a detected target that a user should know, as (name, value).
        threads: Returns on how many threads programs run where the user names no number.
        rewrites: Which rewrites of the whole program compete too: a key of ``program.rewrites.REWRITES``, or empty for
            none.
        absent: Describes a device that need not be there, by its name, for programs that are compiled and not run.
            Raises a UserError when no such device is known. None where only devices of this machine are targets.
        processor: Compiler options that name the processor, where a folder that was tuned on one can be replayed on
            another: its scripts are checked with the flags of the other.
    """

    detect: Callable[[int, str], Target]
    variants: Mapping[str, tuple[str, ...]]
    facts: Callable[[Target], tuple[tuple[str, str], ...]]
    threads: Callable[[], int] = device_decides
    rewrites: str = ""
    absent: Callable[[str], Target] | None = None
    processor: tuple[str, ...] = ()
