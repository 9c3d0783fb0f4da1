"""A hook of the documentation site: the lab page as a file that pages embed, and `llms.txt`, a list of the pages for language models."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page

from isoviz.commands import dashboard

LAB, LLMS = "lab.html", "llms.txt"
_navigation: list[Navigation] = []


def on_files(files: Files, /, *, config: MkDocsConfig) -> Files:
    """Add the page that `isoviz page` writes; links to it are then checked."""
    files.append(File.generated(config, LAB, content=dashboard.module("export.standalone").render(start="vectors")))
    return files


def on_nav(nav: Navigation, /, **_: Any) -> None:
    _navigation[:] = [nav]


def on_post_build(*, config: MkDocsConfig) -> None:
    """Write `llms.txt` (llmstxt.org): the pages with their first sentences, in the sections of the navigation."""
    lines = [f"# {config.site_name}", f"> {config.site_description}"]
    for item in _navigation[0].items:
        if isinstance(item, Section):
            pages = [page for page in item.children if isinstance(page, Page)]
            lines.append(f"## {item.title}\n\n" + "\n".join(map(_entry, pages)))
        elif isinstance(item, Page):
            lines.append(_entry(item))
    Path(config.site_dir, LLMS).write_text("\n\n".join(lines) + "\n", encoding="utf-8")


def _entry(page: Page) -> str:
    """A line with a link to a page, from its folder, and its first sentence."""
    paragraphs = [block for block in (page.markdown or "").split("\n\n") if re.match(r"[\w*`\[“]", block)]
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|[*`]", r"\1", " ".join((paragraphs or [""])[0].split()))
    sentence = re.match(r".*?[.?](?= |$)|.*", plain)
    return f"- [{page.title}]({page.url or './'})" + (f": {sentence[0]}" if sentence and sentence[0] else "")
