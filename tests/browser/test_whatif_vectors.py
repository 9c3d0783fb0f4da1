"""What-if without a run: a newcomer's own table to a verdict."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pandas as pd
from playwright.sync_api import Page, expect

from tests.browser.conftest import LONG, OpenTab, Server, becomes, fits

GOOD = ("I liked the soup", "The doctor was kind", "A lovely house", "We enjoyed the music", "The room was bright")
BAD = ("I hated the soup", "The doctor was rude", "An ugly house", "We left the concert", "The room was dark")
WHEN = ("today", "on Monday", "in the evening", "with my sister", "near the park", "again")


def choose(page: Page, field: str, option: str) -> None:
    """Choose in a select box by typing, as the keyboard does."""
    box = page.get_by_role("combobox", name=field, exact=True)
    box.click()
    box.fill(option)
    page.get_by_role("option", name=option, exact=True).click()


def sixty_rows(path: Path) -> None:
    """A table as a newcomer has it: text and label, 60 rows."""
    rows = [
        (f"{text} {when}.", name) for name, texts in (("good", GOOD), ("bad", BAD)) for text in texts for when in WHEN
    ]
    random.Random(0).shuffle(rows)
    pd.DataFrame(rows, columns=["text", "label"]).to_csv(path, index=False)


def test_a_newcomer_learns_whether_whitening_helps(server: Server, open_tab: OpenTab, tmp_path: Path) -> None:
    sixty_rows(tmp_path / "mine.csv")
    page = open_tab(server.url)
    home = page.get_by_role("link", name="Try it on my data")
    expect(home).to_be_visible(timeout=LONG)
    home.click()  # the first click
    upload = page.get_by_test_id("stFileUploaderDropzoneInput").first
    expect(upload).to_be_attached(timeout=LONG)
    upload.set_input_files(tmp_path / "mine.csv")  # the second
    choose(page, "Which encoder do you use?", "demo/tiny-bert")  # the last: no encoder is used unasked
    expect(page.get_by_text(re.compile("^Classifier: (cannot tell|do not whiten|whiten|no difference)"))).to_be_visible(
        timeout=LONG
    )
    verdict = page.get_by_text(re.compile("Cross-validated over all 60 labelled rows: Linear probe"))
    expect(verdict).to_be_visible(timeout=LONG)
    expect(verdict).to_contain_text(re.compile(r"95 % interval|the same in every resample"))
    expect(verdict).to_contain_text("The smallest difference that 60 rows can show is 0.1")
    expect(page.get_by_text("Transforms are fitted on 20 rows")).to_be_visible()

    other = open_tab(page.url, width=390)  # a new session: the upload is found by its key
    expect(other.get_by_text(re.compile("Cross-validated over all 60 labelled rows"))).to_be_visible(timeout=LONG)
    becomes(other, lambda: fits(other), True)
