"""Tensors outside of programs: their elements in numpy and in memory, values that a user gives, files of weights."""
