"""What a test needs of this machine; where that is required, its absence is a failure and not a skip."""

import os

import pytest


def require(why_not: str | None, variable: str) -> None:
    """Skip the current test when there is a reason; fail it when the environment variable has the value 1."""
    if why_not is None:
        return
    if os.environ.get(variable) == "1":
        pytest.fail(f"{variable}=1, but {why_not}")
    pytest.skip(why_not)
