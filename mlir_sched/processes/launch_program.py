"""First code of a child that is no Python program: ties it to its parent, and becomes the program.

Run as ``python -I -S launch_program.py <process id of the parent> <program> <argument>...``; takes 10 ms. SIGTERM is
ignored for the reason that ``launch_module.py`` gives.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main() -> None:
    """Become the program; the kernel kills it when the thread that started it ends."""
    parent, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):
        sys.exit("the parent is gone")  # it died before the call of prctl
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # blocked by the parent (held_signals.py)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
