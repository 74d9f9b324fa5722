"""The processor that compiler flags name, and how two sets of flags differ in that."""

from collections.abc import Mapping, Sequence

CPU, CPU_FEATURES = "--iree-llvmcpu-target-cpu", "--iree-llvmcpu-target-cpu-features"
"""The options that say which CPU code is generated for: its name, and features on top of those of the name."""
HOST = "host"
"""The name that stands for whatever CPU the compiler runs on."""
SHOWN = 4
"""Most features that a text names."""


def flag_values(flags: Sequence[str]) -> dict[str, str]:
    """Return the values of compiler flags by the option's name; of an option given twice the last, as IREE does."""
    pairs = (flag.partition("=") for flag in flags)
    return {f"--{name.lstrip('-')}": value if equals else "true" for name, equals, value in pairs}


def processor_difference(flags: Mapping[str, str], others: Mapping[str, str]) -> str:
    """Return how the processor of some flags, by name, differs from that of others; empty where both are the same."""
    name, other = flags.get(CPU, "none"), others.get(CPU, "none")
    if name != other:
        return f"{name}, not {other}"
    own, theirs = (set(filter(None, values.get(CPU_FEATURES, "").split(","))) for values in (flags, others))
    if own == theirs:
        return ""
    names = sorted(own - theirs) or sorted(theirs - own)
    shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    return f"{name} {'with' if own - theirs else 'without'} {shown}"
