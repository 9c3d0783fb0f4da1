"""A user's own file, from upload to results: bad rows are reported and fixed, a run is launched, its errors are read."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import LONG, OpenTab, Server, becomes

GOOD, BAD = ["fine", "lovely", "great"], ["dull", "poor", "awful"]


def write(path: Path, *, faulty: bool) -> Path:
    """Sixty reviews under headings that no one expects; of the faulty file three rows have no text."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["Nr", "Gesagt", "Laune", "Ort"])
        for row in range(60):
            mood, words = ("froh", GOOD) if row % 2 else ("trüb", BAD)
            sentence = f"the {words[row % 3]} film number {row} was {words[(row + 1) % 3]} to see"
            table.writerow([row, "" if faulty and row in (4, 17, 30) else sentence, mood, f"a small town called {row}"])
    return path


def combobox(page: Page, field: str) -> Locator:
    return page.get_by_role("combobox", name=field, exact=True)


def choose(page: Page, field: str, option: str) -> None:
    """Choose in a select box by typing, as the keyboard does."""
    combobox(page, field).click()
    combobox(page, field).fill(option)
    page.get_by_role("option", name=option, exact=True).click()


def test_upload_correct_inspect_launch_and_read_the_errors(
    training: Server,
    open_tab: OpenTab,
    tmp_path: Path,
) -> None:
    page = open_tab(
        f"{training.url}/train?train_tasks=Own+data&train_from.own=Upload&train_methods=Baseline&train_epochs=1"
        "&train_max_length=32"
    )
    upload = page.get_by_test_id("stFileUploaderDropzoneInput").first
    launch = page.locator(".st-key-launch button").last
    expect(upload).to_be_attached(timeout=LONG)
    upload.set_input_files(write(tmp_path / "reviews.csv", faulty=True))

    # columns of words are guessed to be the text and the first other one the label; another one is chosen, and corrected
    expect(combobox(page, "Text column")).to_have_value("Gesagt", timeout=LONG)
    expect(combobox(page, "Label column")).to_have_value("Laune")
    choose(page, "Label column", "Nr")
    expect(page.get_by_text("Inferred: number.")).to_be_visible()
    choose(page, "Label column", "Laune")
    expect(page.get_by_text("3 rows are invalid: correct or remove them.")).to_be_visible()
    for words in ("what is wrong", "empty 'Gesagt'"):
        expect(page.get_by_text(words).first).to_be_attached()
    expect(launch).to_be_disabled()

    # fixed outside and uploaded again; columns are guessed again, the rest of the form stays
    upload.set_input_files(write(tmp_path / "mended.csv", faulty=False))
    expect(page.get_by_text("Inferred: class")).to_be_visible()
    expect(page.get_by_text("48 rows: froh")).to_be_visible()
    expect(page.get_by_text("12 rows: froh")).to_be_visible()
    page.get_by_text("Rows as they will be used").click()
    for title in ("text: words per row", "Classes"):
        expect(page.get_by_text(title, exact=True)).to_be_visible()
    expect(page.locator(".ivz-figure-plot.js-plotly-plot")).to_have_count(2)
    expect(page.locator(".ivz-figure-plot .main-svg").first).to_be_visible()

    expect(launch).to_have_text(re.compile("Launch 1 run$"))
    expect(launch).to_be_enabled()
    launch.click()
    expect(page.get_by_role("heading", name="Live", exact=True)).to_be_visible()
    run = training.store.list(limit=1)[0]
    becomes(page, lambda: training.store.get(run.id).status, "finished")
    task = run.config.own
    assert task is not None
    assert (task.text, task.label, task.label_names) == ("Gesagt", "Laune", ("froh", "trüb"))

    # what it predicted: the matrix, and its rows with their texts
    result = open_tab(f"{training.url}/run?id={run.id}")
    expect(result.get_by_role("heading", name="Predictions")).to_be_visible()
    expect(result.get_by_text("n = 12").first).to_be_visible()
    expect(result.locator(".st-key-run_confusion .main-svg").first).to_be_visible(timeout=LONG)
    result.get_by_text("Row by row, worst first").click()
    result.get_by_text("Errors only").click()
    expect(result.get_by_text("12 rows.")).to_be_visible(timeout=LONG)
    expect(result.get_by_text("film number").first).to_be_attached()
