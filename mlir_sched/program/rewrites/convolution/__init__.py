"""Rewrites of single convolutions: other algorithms, and other forms of their operands."""
