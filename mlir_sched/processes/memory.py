"""Memory: how much this machine has, how much a child may take, and how much a process takes or took at most."""

import os
from contextlib import suppress
from pathlib import Path

import psutil

CHILD_SHARE = 0.75
"""Share of the machine's memory above which a child is stopped; the rest is for the parent and the system."""
_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def child_memory_bytes(children: int = 1) -> int:
    """Return the bytes of resident memory that each of ``children`` simultaneous children may take."""
    return int(CHILD_SHARE * machine_memory_bytes() / children)


def machine_memory_bytes() -> int:
    """Return the bytes of memory of this machine, or the limit of its container where that is lower."""
    return min([int(psutil.virtual_memory().total), *_cgroup_limits(_OWN_CGROUPS, _CGROUPS)])


def resident_bytes(process: int) -> int:
    """Return the bytes of resident memory of a process and of all its descendants; 0 when the process is gone.

    Read from ``/proc`` (about 50 us), because psutil looks at all processes of the machine to find the children.
    """
    return own_bytes(process) + sum(map(resident_bytes, _children(process)))


def own_bytes(process: int) -> int:
    """Return the bytes of resident memory of a process without its descendants; 0 when the process is gone."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE_BYTES
    return 0


def peak_bytes() -> int:
    """Return the most bytes of resident memory that this process had since :func:`begin_peak`.

    Read from ``VmHWM``; what ``getrusage`` reports is at least the parent's at the time of the fork.
    """
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def begin_peak() -> None:
    """Let :func:`peak_bytes` begin with what is resident now; where the kernel refuses, with the process."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def mebibytes(size: int) -> str:
    """Return a size as text, e.g. ``4096 MiB``."""
    return f"{size >> 20} MiB"


def _children(process: int) -> list[int]:
    """Return the children of all threads of a process; empty where the kernel does not list them."""
    found: list[int] = []
    with suppress(OSError):  # threads end while they are looked at
        for thread in Path(f"/proc/{process}/task").iterdir():
            found += map(int, (thread / "children").read_text().split())
    return found


def _cgroup_limits(own: Path, mounted: Path) -> list[int]:
    """Return the memory limits of a process's control groups and of the groups that contain them.

    Args:
        own: File with its groups (``/proc/<process>/cgroup``), one per line: ``0::/path`` (version 2) or
            ``4:memory:/path`` (version 1).
        mounted: Folder where the groups are mounted.
    """
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return []
    limits: list[int] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            limits += _limits_above(mounted, path, "memory.max")
        elif "memory" in controllers.split(","):
            limits += _limits_above(mounted / "memory", path, "memory.limit_in_bytes")
    return limits


def _limits_above(mounted: Path, path: str, name: str) -> list[int]:
    """Return the limits in the files called ``name`` from a group up to the mount; ``max`` means no limit."""
    folder = mounted / path.strip("/")
    limits: list[int] = []
    for group in (folder, *folder.parents):
        if not group.is_relative_to(mounted):
            break
        with suppress(OSError, ValueError):
            limits.append(int((group / name).read_text()))
    return limits
