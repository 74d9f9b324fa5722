"""Folders that tests read files from."""

from pathlib import Path

TESTS = Path(__file__).parent
ROOT = TESTS.parent
DATA = TESTS / "data"
