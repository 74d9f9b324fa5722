"""Integers of a program: read as expressions over its arguments, and the ranges that keep positions inside tensors."""
