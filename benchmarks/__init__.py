"""Benchmarks by question: ``python -m benchmarks`` lists them, see docs/benchmarks.md."""
