"""Benchmarks; each is a program of its own, see docs/benchmarks.md."""
