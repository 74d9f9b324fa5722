"""Files of fitted cost models: a JSON object each, written whole or not at all."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_model(path: Path, kind: str, data: Mapping[str, Any]) -> None:
    """Write what makes a model of a kind."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps({"format": kind, **data}))
    partial.replace(path)


def read_model(path: Path, kind: str) -> dict[str, Any]:
    """Return what :func:`write_model` wrote.

    Raises:
        ValueError: The file is not a model of this kind.
    """
    try:
        data = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} is not a model file: {error}") from error
    if not isinstance(data, dict) or data.get("format") != kind:
        raise ValueError(f"{path} is not a model file of the format {kind!r}")
    return data
