"""The start-up time of the command, as whole processes that only print help or version, and its number of imports."""

import statistics
import subprocess
import sys
import time

RUNS = 10
LIMIT_S = 0.3


def seconds_of_command(*arguments: str) -> float:
    """Return the wall-clock seconds of one run of the command."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "mlir_sched.cli", *arguments], check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    """Print the median and the range of the times of each command."""
    for arguments in (("--help",), ("--version",), ("tune", "--help")):
        times = [seconds_of_command(*arguments) for _ in range(RUNS)]
        print(
            f"mlir-sched {' '.join(arguments):11} median {statistics.median(times):.3f} s, "
            f"{min(times):.3f} to {max(times):.3f} s, limit {LIMIT_S} s"
        )
    program = "import sys, mlir_sched.cli; print(len(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    print(f"modules loaded by the command line: {done.stdout.strip()}")
