"""Samples, rows, tables, charts and reports that the benchmarks share."""
