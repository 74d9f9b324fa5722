"""Each test has one tier; in the fast one no test starts a process; of a sweep one case stays."""

from __future__ import annotations

import re

import pytest
from folders import ROOT, TESTS
from tiers import TIERS, give_tiers

MARKED = """
import pytest

def test_plain(): ...

@pytest.mark.promise
def test_promise(): ...

@pytest.mark.landing
@pytest.mark.promise
def test_landing(): ...

@pytest.mark.alone
def test_alone(): ...

@pytest.fixture
def made(processes): ...

def test_made(made): ...

@pytest.mark.parametrize("case", "abc")
@pytest.mark.sweep("nightly")
def test_first(case): ...

@pytest.mark.landing
@pytest.mark.parametrize("case", "abc")
@pytest.mark.sweep("nightly", keep="b")
def test_named(case): ...
"""
STARTING = """
import subprocess
import pytest

def start():
    try:
        subprocess.run(["true"])
    except Exception:
        pass

@pytest.fixture(scope="module")
def started():
    start()

def test_starts(): start()
def test_with_a_fixture_that_starts(started): ...
def test_plain(): ...

@pytest.mark.promise
def test_promise(): start()
"""
PLUGINS = ("-p", "process_guard", "-p", "tiers", "-p", "no:xdist", "-p", "no:rerunfailures")


def test_each_test_is_in_the_tier_of_its_marks_and_fixtures(pytester: pytest.Pytester) -> None:
    items = pytester.getitems(MARKED)
    give_tiers(items)
    found = {tier: [item.name for item in items if tier_of(item) == tier] for tier in TIERS}
    assert found == {
        "fast": ["test_plain", "test_first[a]"],
        "promise": ["test_promise", "test_alone", "test_made"],
        "landing": ["test_landing", "test_named[b]"],
        "nightly": ["test_first[b]", "test_first[c]", "test_named[a]", "test_named[c]"],
    }


def tier_of(item: pytest.Item) -> str:
    """Return the last tier among the marks of a test, by which tests are selected."""
    return max((mark.name for mark in item.iter_markers() if mark.name in TIERS), key=TIERS.index)


@pytest.mark.parametrize(("mark", "said"), [('"weekly"', "no tier 'weekly'"), ('"nightly", keep="d"', "keeps 'd'")])
def test_a_sweep_into_no_tier_or_without_its_representative_is_refused(
    pytester: pytest.Pytester, mark: str, said: str
) -> None:
    items = pytester.getitems(
        f"import pytest\n@pytest.mark.sweep({mark})\n@pytest.mark.parametrize('c', 'ab')\ndef test_x(c): ..."
    )
    with pytest.raises(pytest.UsageError, match=said):
        give_tiers(items)


@pytest.mark.promise
def test_a_fast_test_that_starts_a_process_fails_even_where_the_error_is_hidden(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(STARTING)
    result = pytester.runpytest_inprocess(*PLUGINS)
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["*test_starts is in the fast tier and starts a process*"])


def test_tests_of_extras_are_in_no_tier_and_have_a_command(pytestconfig: pytest.Config) -> None:
    assert "tests/extras" in pytestconfig.getini("norecursedirs")
    assert list((TESTS / "extras").glob("test_*.py"))
    assert re.search(r"^extras: .*\n(\t.*\n)*\t.*-m pytest tests/extras", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for document in (ROOT / "CONTRIBUTING.md", TESTS / "README.md"):
        assert "`make extras`" in document.read_text()
