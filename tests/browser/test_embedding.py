"""A new user's own pairs become an embedding model: from the form to a folder of sentence-transformers and the ruler, before and after."""

from __future__ import annotations

import re
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from dashboard.shared import menu
from isoviz import tasks
from isoviz.runs import pretrained
from tests.browser.conftest import LONG, OpenTab, Server
from tests.runs.observing import until


def noise_floor(page: Page, encoder: str, url: str) -> float:
    """Of the set whose ruler page has this address."""
    page.goto(f"{url}&ruler_model={quote(encoder, safe='')}")
    read = page.get_by_text(re.compile("floor (is|of) [0-9.]+|noise floor, [0-9.]+ to")).first
    expect(read).to_be_visible(timeout=LONG)
    (found,) = re.findall(r"floor(?: is| of|,) ([0-9.]+[0-9])", read.inner_text())[:1]
    return float(found)


@pytest.mark.nightly
def test_own_pairs_to_a_saved_model_and_its_ruler(training: Server, open_tab: OpenTab, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    began = time.monotonic()
    rows = tasks.load(tasks.get("demo/search"), max_train=300).train[["query", "document"]]
    rows.set_axis(["question", "answer"], axis=1).to_csv(tmp_path / "pairs.csv", index=False)
    known = {row.id for row in training.store.list()}
    page = open_tab(f"{training.url}/train?train_tasks=Own%20data&train_data.own={tmp_path / 'pairs.csv'}")
    expect(page.get_by_text(re.compile("Inferred: .*embedding", re.IGNORECASE))).to_be_visible(timeout=LONG)
    page.get_by_role("button", name="Launch 2 runs").click(timeout=LONG)
    expect(page.get_by_role("heading", name="Live", exact=True)).to_be_visible(timeout=LONG)
    until(lambda: len([r for r in training.store.list(status="finished") if r.id not in known]) == 2, seconds=240)
    run = next(r for r in training.store.list() if r.id not in known and r.config.method == "baseline")
    assert run.config.task == "own" and run.result is not None and run.result.metrics["ndcg"] is not None

    page.goto(f"{training.url}/run?id={run.id}")
    expect(
        page.get_by_text("Model (sentence-transformers)").or_(page.get_by_text("Build the model")).first
    ).to_be_visible(timeout=LONG)
    folder = pretrained.save(run, training.store.folder_of(run.id), tmp_path / "saved")
    vectors = SentenceTransformer(str(folder), device="cpu").encode_query(rows["query"].tolist()[:3])
    assert vectors.shape == (3, 128)

    page.get_by_test_id("stMain").get_by_role("link", name="Ruler").click()
    expect(page).to_have_url(re.compile(f"ruler_model=run.+{run.id}"))
    page.goto(f"{training.url}/ruler?ruler_set={quote(menu.OWN_SET)}")
    page.get_by_text("Paste", exact=True).click()
    page.get_by_role("textbox", name="Texts, one per line").fill("\n".join(rows["document"].head(60)))
    page.get_by_role("textbox", name="Texts, one per line").press("Control+Enter")
    expect(page.get_by_text("Which encoder do you use?")).to_be_visible(timeout=LONG)
    expect(page).to_have_url(re.compile("ruler_either=[^&]+"))
    before, after = (
        noise_floor(page, encoder, page.url.partition("&ruler_model")[0])
        for encoder in ("demo/tiny-bert", f"run:{run.id}")
    )
    assert after < before
    assert time.monotonic() - began < 300
