"""The worth of each part of the CPU design space: growing spaces at an equal budget, see ``docs/benchmarks.md``."""
