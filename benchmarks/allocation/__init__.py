"""Recorded runs, and their replay: what rules about time are worth, without a compiler and without a device."""
