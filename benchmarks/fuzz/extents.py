"""Extents of random tensors."""

EXTENTS = (1, 2, 3, 5, 7, 8, 13, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65)
"""Ones, primes, powers of two and what lies beside them: tiles and vectors fit, or leave a rest."""
