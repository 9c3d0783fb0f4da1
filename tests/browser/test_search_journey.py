"""A search engineer's eight questions, from three uploads: each answered in a sentence after at most four clicks."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from isoviz import vectors
from isoviz.vectors import demo_sets
from tests.browser.conftest import LONG, OpenTab, Server, save_page, stable

MOST_CLICKS = 4
PATTERNS = {
    "Is 0.45 a good hit?": r"^0\.450 is above .* of unrelated pairs: .* As a query's best hit it is relevant with probability \d",
    "Vectors in a database": r"^A file on the server, .* or the address of a database, .* a random sample of its rows is read; nothing",
    "Long documents and areas": r"^best hit is relevant: (different from the rest|no slice is shown to differ)",
    "Whiten?": r"^Search: (better not|yes|no harm|cannot tell|.+)\. nDCG@10, cosine (changes|rises|falls)? ?",
    "Dimensions, int8?": r"(^Smallest that loses at most 1 point of nDCG@10: .* bytes per vector instead of|^Nothing smaller than)",
    "Hubs and never found": r"^The \d.* found most often take .* among the 10 nearest rows of .* are hubs .* never found by a query\.",
    "A gate in CI": r"^nDCG@10 is 0\.\d+ on .* questions today\. The gate fails when it falls by more than 1 point\.",
    "Change the encoder?": r"(ranks (higher|lower) than|^Cannot tell whether .* ranks|no harm)",
    "One page for the boss": r"Should we change our encoder\?",
}
"""Question → what its sentence looks like."""


class Journey:
    """Clicks after the uploads, and the sentence that each question got."""

    def __init__(self, page: Page) -> None:
        self.page, self.clicks, self.sentences = page, 0, dict[str, tuple[int, str]]()

    def click(self, target: Locator) -> None:
        target.click(timeout=LONG)
        self.clicks += 1

    def answer(self, question: str, clicks: int | None = None) -> None:
        """The screen's sentence on a question. `clicks`: since the uploads, if not all count for it."""
        shown = self.page.locator("[data-testid=stMain] p").filter(has_text=re.compile(PATTERNS[question]))
        expect(shown.first).to_be_visible(timeout=LONG)
        self.sentences[question] = (self.clicks if clicks is None else clicks, shown.first.inner_text())


def walk(page: Page, url: str, folder: Path) -> dict[str, tuple[int, str]]:
    """The journey from Home with documents, questions and relevance of two encoders (`documents.parquet`, `documents_2.parquet`, …)."""
    journey, fields = Journey(page), page.get_by_test_id("stFileUploaderDropzoneInput")
    page.get_by_role("link", name="What does 0.62 mean?").click()
    page.get_by_role("combobox", name="Vectors").first.click()
    page.get_by_role("option", name="Your own vectors or texts").click()
    for place, name in enumerate(("documents.parquet", "questions.parquet", "relevance.csv")):
        fields.nth(place).set_input_files(folder / name)
        expect(page.get_by_text(name, exact=True).first).to_be_visible(timeout=LONG)
    expect(page.get_by_text(re.compile("with id, text, group, relevance"))).to_be_visible(timeout=LONG)

    cosine = page.get_by_role("spinbutton", name="What does this cosine mean?")
    journey.click(cosine)
    cosine.fill("0.45")
    cosine.press("Enter")
    journey.answer("Is 0.45 a good hit?")
    journey.clicks = 0
    journey.click(page.get_by_text("Columns and further files"))
    journey.click(page.get_by_role("combobox", name="Label").first)
    journey.click(page.get_by_role("option", name="area"))
    expect(page.get_by_text(re.compile("with id, text, label, group, relevance"))).to_be_visible(timeout=LONG)
    journey.click(page.get_by_text("By slice", exact=True))
    journey.answer("Long documents and areas")
    page.get_by_text("By slice", exact=True).click()

    journey.clicks = 0
    journey.click(page.get_by_text("Path or database"))
    journey.answer("Vectors in a database")
    page.get_by_text("Upload", exact=True).first.click()

    journey.clicks = 0
    journey.click(page.get_by_role("link", name="What-if", exact=True))
    journey.answer("Whiten?")
    for title, question in (
        ("How small can it be?", "Dimensions, int8?"),
        ("Hubs, rows never found, near-duplicates", "Hubs and never found"),
        ("A gate in CI, on files or a database", "A gate in CI"),
    ):
        journey.click(page.get_by_text(title, exact=True))
        journey.answer(question, clicks=2)

    page.get_by_role("link", name="Compare", exact=True).click()
    page.get_by_text("Your vectors", exact=True).click()
    expect(page.get_by_text("A file from each encoder, of the same documents.")).to_be_visible(timeout=LONG)
    for place, names in enumerate(("documents", "questions")):
        fields.nth(place).set_input_files([folder / f"{names}.parquet", folder / f"{names}_2.parquet"])
        expect(page.get_by_text(f"{names}_2.parquet", exact=True).first).to_be_attached(timeout=LONG)
    fields.nth(2).set_input_files(folder / "relevance.csv")
    journey.answer("Change the encoder?", clicks=0)
    journey.clicks = 0
    title = page.get_by_role("textbox", name="Title of the page")
    journey.click(title)
    title.fill("Should we change our encoder?")
    title.press("Enter")
    stable(
        page, lambda: page.evaluate("document.querySelector('.stApp').dataset.testScriptState")
    )  # it begins after the key
    content = save_page(page, folder / "boss.html")
    heading = re.search(r"<h1>(.*?)</h1>", content)
    answer = journey.sentences["Change the encoder?"][1]
    assert heading is not None and escape(answer) in content
    journey.sentences["One page for the boss"] = (journey.clicks + 1, f"{heading[1]} {answer}")
    return journey.sentences


@pytest.mark.nightly
def test_eight_questions_from_three_uploads(server: Server, open_tab: OpenTab, tmp_path: Path) -> None:
    search = vectors.load(demo_sets.RECORDED[demo_sets.RETRIEVAL])
    frame = search.columns.assign(area=np.where(np.arange(search.n) % 2, "tea", "coffee"))
    assert search.pairs is not None
    for name, side in (("documents", "document"), ("questions", "query")):
        own = (frame["group"] == side).to_numpy()
        for suffix, d in (("", search.d), ("_2", 16)):
            points = list(search.points[own][:, :d].astype(np.float32))
            table = frame[own].drop(columns="group").assign(embedding=points)
            table.to_parquet(tmp_path / f"{name}{suffix}.parquet")
    search.pairs.set_axis(["query", "document", "relevance"], axis=1).to_csv(tmp_path / "relevance.csv", index=False)
    page = open_tab(server.url, width=1440)
    sentences = walk(page, server.url, tmp_path)
    assert list(PATTERNS.keys() - sentences.keys()) == []
    expect(page.get_by_test_id("stToast")).to_have_count(0)
    for question, (clicks, sentence) in sentences.items():
        assert clicks <= MOST_CLICKS and re.search(PATTERNS[question], sentence), (question, clicks, sentence)
