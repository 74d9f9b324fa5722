"""Devices of targets: as their drivers describe them, each asked in a process of its own, or as a file does."""
