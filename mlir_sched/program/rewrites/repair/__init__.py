"""Forms of programs that IREE is known to compile wrong, and their repair."""
