"""What each part of the CPU design space is worth: growing spaces at an equal budget, see ``docs/benchmarks.md``."""
