"""What mkdocs does with the pages: two files of the root become pages, and links that leave the site become text.

The documents are read on GitHub, too, where they link to files of the repository that the site does not have.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md", "README.md": "index.md"}
"""Files of the root, with the pages that stand for them on the site."""
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the files of the root that are pages of their own (an event of mkdocs)."""
    from mkdocs.structure.files import File

    for source, page in PAGES.items():
        if page not in files.src_uris:
            files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return a page with links that lead to pages (an event of mkdocs)."""
    sources = {page: source for source, page in PAGES.items() if page != "index.md"}
    name = page.file.src_uri
    return with_links_of_the_site(markdown, sources.get(name, f"docs/{name}"), name)


def with_links_of_the_site(markdown: str, source: str, page: str) -> str:
    """Return a document with links to other pages where there are such, and with the text of the link where not.

    Args:
        source: Its path in the repository.
        page: Its path on the site.
    """

    def lead(link: re.Match[str]) -> str:
        text, target, anchor = link.groups()
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        to = PAGES.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else "")
        if not to:
            return str(text)
        return f"[{text}]({posixpath.relpath(to, posixpath.dirname(page) or '.')}{anchor or ''})"

    return _LINK.sub(lead, markdown)
