"""The site has every document, and its links lead to pages of the site."""

from __future__ import annotations

import re

import pytest
from folders import ROOT

from benchmarks.pages.makers import readme
from benchmarks.pages.site import PAGES, with_links_of_the_site


def test_every_document_has_a_place_on_the_site_and_every_place_a_document() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    shown = re.findall(r"^ +- (?:.*: )?(\S+\.md)$", navigation, re.MULTILINE)
    documents = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert sorted(shown) == sorted(documents | set(PAGES.values()))


@pytest.mark.parametrize(
    ("source", "page", "link", "shown"),
    [
        ("docs/start/a.md", "start/a.md", "[the text](../cli.md#files)", "[the text](../cli.md#files)"),
        ("docs/index.md", "index.md", "[the text](../CONTRIBUTING.md)", "[the text](contributing.md)"),
        ("docs/start/a.md", "start/a.md", "[the text](../../README.md)", "[the text](../index.md)"),
        ("CONTRIBUTING.md", "contributing.md", "[the text](docs/targets.md)", "[the text](targets.md)"),
        ("docs/cmake.md", "cmake.md", "[`the text`](../examples/c_program)", "`the text`"),
        ("docs/cli.md", "cli.md", "[the text](#files)", "[the text](#files)"),
        ("docs/cli.md", "cli.md", "[the text](https://iree.dev)", "[the text](https://iree.dev)"),
        ("docs/results/a.md", "results/a.md", "![a picture](../operators.png)", "![a picture](../operators.png)"),
    ],
)
def test_a_link_leads_to_a_page_or_is_text(source: str, page: str, link: str, shown: str) -> None:
    assert with_links_of_the_site(f"See {link}, please.", source, page) == f"See {shown}, please."


def test_the_limits_that_the_readme_names_are_on_the_site() -> None:
    limits = (ROOT / "README.md").read_text().split("\n## Limits\n")[1].split("\n## ")[0]
    shown = (ROOT / "docs" / "index.md").read_text().split("\n## Limits\n")[1].split("\n## ")[0]
    words = [re.sub(r"\]\(.*?\)", "]", text).split("\n- ")[1:] for text in (limits, shown.split("\n\n<!-- end")[0])]
    assert len(words[0]) > 3
    assert [text.strip() for text in words[0]] == [text.strip() for text in words[1]]


def test_a_section_that_the_readme_has_not_is_refused() -> None:
    assert readme("Limits").startswith("- ")
    with pytest.raises(KeyError):
        readme("Praise")
