"""The variants of a program: which there are, which are compiled and timed, and which are worth tuning."""
