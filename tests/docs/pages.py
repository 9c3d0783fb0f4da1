"""The project's pages in Markdown, and what is in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
_NOT_RUN = re.compile(r"<!-- not run: (.+?) -->\s*$")


@dataclass(frozen=True)
class Block:
    """A fenced block: the first word after the fence, the rest of that line, the text, its first line, why it is not run."""

    page: Path
    language: str
    options: str
    text: str
    line: int
    not_run: str

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """In the page's order. `<!-- not run: REASON -->` stands in the line above a block that no test runs."""
    before = None
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type == "fence" and token.map:
            marked = _NOT_RUN.search(before.content) if before is not None and before.type == "html_block" else None
            language, _, options = token.info.strip().partition(" ")
            yield Block(page, language, options, token.content, token.map[0] + 1, marked[1] if marked else "")
        before = token


def links(page: Path) -> Iterator[str]:
    """The targets of its links and pictures."""
    for token in MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8")):
        for part in token.children or ():
            target = part.attrGet("href") or part.attrGet("src")
            if target is not None:
                yield str(target)
