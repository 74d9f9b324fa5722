"""The tier of each test, as a pytest plugin.

A test is in the first of these tiers that has it:

- ``nightly``: marked so;
- ``landing``: marked so;
- ``promise``: marked so, marked ``alone``, or made with a fixture that requests the fixture ``processes``;
- ``fast``: every other test. Such a test starts no process, or fails (``process_guard.py``).

A mark of a test and a mark of its module count both: the later tier is the test's. A parametrised test with the mark
``sweep(tier, keep=ID)`` leaves one representative where it is, and has its other cases in the tier named.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

TIERS = ("fast", "promise", "landing", "nightly")
"""From the first that is run to the last. After collection each test has the mark of its tier, and may have marks of
earlier ones: ``-m fast`` selects the first tier, ``-m 'landing and not nightly'`` the third."""
MARKS = (
    "fast: starts no process, which is enforced; every test without another tier",
    "promise: starts processes, and keeps a promise of the README or of a layer's contract",
    "landing: guards a landing beyond what `make test` runs",
    "nightly: a sweep, a statistic, or many kills; run once a day",
    "sweep(tier, keep=ID): one case of a parametrised test, the first or the one named, stays in its tier; the others "
    "are in the tier that the mark names",
)


def pytest_configure(config: pytest.Config) -> None:
    """Make the marks known."""
    for mark in MARKS:
        config.addinivalue_line("markers", mark)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test with its tier, before tests are selected by their marks."""
    give_tiers(items)


@pytest.fixture(scope="session")
def processes() -> None:
    """Say of a fixture that requests this one that it starts processes: tests with it are not in the fast tier."""


def give_tiers(items: Iterable[pytest.Item]) -> None:
    """Mark every test with its tier.

    Raises:
        pytest.UsageError: A sweep names no tier, or a case that is not among its cases.
    """
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for same in cases.values():
        stays = _representative(same)
        for item in same:
            item.add_marker(_tier(item, stays=item is stays))


def _tier(item: pytest.Item, *, stays: bool) -> str:
    given = [tier for tier in TIERS if item.get_closest_marker(tier)]
    starts = "processes" in getattr(item, "fixturenames", ()) or item.get_closest_marker("alone")
    sweep = item.get_closest_marker("sweep")
    later: list[str] = [sweep.args[0]] if sweep and not stays else []
    if not {*later} <= {*TIERS}:
        raise pytest.UsageError(f"{item.nodeid}: no tier {later[0]!r}; tiers are {', '.join(TIERS)}")
    return max([*given, *later, "promise" if starts else "fast"], key=TIERS.index)


def _representative(cases: list[pytest.Item]) -> pytest.Item:
    """Return the case that a sweep leaves where it is; of a test that is no sweep, any."""
    sweep = cases[0].get_closest_marker("sweep")
    keep = sweep.kwargs.get("keep") if sweep else None
    if keep is None:
        return cases[0]
    named = [case for case in cases if case.nodeid.endswith(f"[{keep}]")]
    if not named and len(cases) > 1:
        raise pytest.UsageError(f"{cases[0].nodeid}: the sweep keeps {keep!r}, which is none of its cases")
    return named[0] if named else cases[0]
