"""The site builds without a warning, needs no other host, and long pages have a table of contents; links of other pages lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dashboard.export import standalone
from factory import site_files
from isoviz.lessons import with_custom
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


def test_the_lab_page_is_in_the_site_and_each_lesson_has_an_address_there(html: dict[str, str]) -> None:
    assert html["lab.html"] == standalone.render(start="vectors")
    for name, address in {"index.html": "lab.html", "playground/index.html": "../lab.html#playground"}.items():
        assert f'<iframe class="lab" src="{address}"' in html[name]
    for lesson in with_custom(()):
        assert re.search(
            rf'href="\.\./lab\.html#lesson={lesson.slug}">\d+\. {re.escape(lesson.title)}<', html["lessons/index.html"]
        )


def test_llms_txt_lists_every_page_with_a_sentence(html: dict[str, str]) -> None:
    text = (built() / site_files.LLMS).read_text(encoding="utf-8")
    entries = re.findall(r"^- \[.+?\]\((.+?)\): .{15,}$", text, re.MULTILINE)
    assert {f"{entry.removeprefix('./')}index.html" for entry in entries} == {
        n for n in html if n.endswith("index.html")
    }
    assert text.startswith("# IsoViz\n\n> Explore the isotropy") and "\n## Reference\n" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Files that exist, and https; mkdocs checks the anchors within docs/."""
    wrong = []
    for link in links(page):
        parts = urlsplit(link)
        if parts.scheme:
            good = (parts.scheme == "https" and "." in parts.netloc) or parts.scheme == "mailto"
        else:
            good = not parts.path or parts.path == site_files.LAB or (page.parent / parts.path).exists()
        if not good:
            wrong.append(link)
    assert wrong == []
