"""Files in which users describe a device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mlir_sched.errors import UserError

FILE = ".json"
"""How the name of a file ends that describes a device."""


def read_json(path: Path) -> Any:
    """Return what a JSON file holds.

    Raises:
        UserError: The file cannot be read, or is no JSON.
    """
    try:
        return json.loads(path.read_text())
    except OSError as error:
        raise UserError(f"{path}: {(error.strerror or str(error)).lower()}") from error
    except ValueError as error:
        raise UserError(f"{path}: not JSON: {error}") from error
