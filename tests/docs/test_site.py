"""The site builds without a warning, needs no other host, and long pages have a table of contents; links of other pages lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.docs.pages import PAGES, ROOT, links
from tests.docs.site import built

MOST_WORDS = 1_500


@pytest.fixture(scope="module")
def html() -> dict[str, str]:
    """The site's pages."""
    folder = built()
    return {page.relative_to(folder).as_posix(): page.read_text(encoding="utf-8") for page in folder.rglob("*.html")}


def test_no_page_loads_anything_from_elsewhere(html: dict[str, str]) -> None:
    elsewhere = r'"(?:https?:)?//'
    loaded = re.compile(
        rf'<(?:script|img|iframe|source)[^>]*\ssrc={elsewhere}|<link[^>]*rel="(?:stylesheet|preload|preconnect)"[^>]*{elsewhere}'
    )
    assert [name for name, text in html.items() if loaded.search(text)] == []


def test_long_pages_have_a_table_of_contents(html: dict[str, str]) -> None:
    def words(text: str) -> int:
        article = text.partition("<article")[2].partition("</article>")[0]
        return len(re.sub(r"<[^>]+>", " ", article).split())

    long = {name for name, text in html.items() if words(text) > MOST_WORDS}
    assert long and [name for name in sorted(long) if "md-nav--secondary" not in html[name]] == []


def test_equations_are_drawn_without_a_script(html: dict[str, str]) -> None:
    assert html["metrics/index.html"].count("<math") > 15
    assert [name for name, text in html.items() if "arithmatex" in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Files that exist, and https; mkdocs checks the anchors within docs/."""
    wrong = []
    for link in links(page):
        parts = urlsplit(link)
        if parts.scheme:
            good = (parts.scheme == "https" and "." in parts.netloc) or parts.scheme == "mailto"
        else:
            good = not parts.path or (page.parent / parts.path).exists()
        if not good:
            wrong.append(link)
    assert wrong == []
