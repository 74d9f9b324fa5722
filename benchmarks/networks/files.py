"""The files of an exported network's inputs."""

from __future__ import annotations

from pathlib import Path


def input_path(folder: Path, place: int) -> Path:
    """Return where an export writes an input: ``input.npy``, and ``input1.npy`` and so on for those after the first.

    Args:
        folder: The folder of the export.
        place: The input's place among the inputs, from 0.
    """
    return folder / f"input{place or ''}.npy"


def input_paths(folder: Path) -> list[Path]:
    """Return the files of the inputs that are in a folder, in the order of the inputs."""
    paths = list[Path]()
    while (path := input_path(folder, len(paths))).exists():
        paths.append(path)
    return paths
