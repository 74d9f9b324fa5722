"""The models of these tests are extracted once in a run of the tests."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def programs_are_extracted_once(extracted_once: None) -> None:
    """Extract the tasks of all models of these tests once."""
