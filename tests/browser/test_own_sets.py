"""Own vectors and own texts in a real browser: uploaded, coloured, pasted, transformed and exported; the address restores it all."""

from __future__ import annotations

import contextlib
import io
import json
import re
import runpy
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from playwright.sync_api import Page, expect

from isoviz import posthoc, vectors
from isoviz.whatif.engine import engine_of
from tests.browser.conftest import LONG, OpenTab, Server, becomes, steady

COLOURS = """() => new Set(document.querySelector(".ivz-map-points").layer.parts.flatMap((part, place) => {
  const bytes = document.querySelector(".ivz-map-points").layer.colours[place];
  return [...Array(part.x.length).keys()].map((i) => bytes.slice(4 * i, 4 * i + 3).join());
})).size"""
POINTS = (
    "() => document.querySelector('.ivz-map-points')?.layer?.parts.reduce((sum, part) => sum + part.x.length, 0) ?? 0"
)


def drawn(page: Page, count: int) -> float:
    """Wait for a map of `count` points; returns the seconds."""
    begin = time.monotonic()
    while page.evaluate(POINTS) != count:
        assert time.monotonic() - begin < LONG / 1000, f"{page.evaluate(POINTS)} points"
        page.wait_for_timeout(20)
    return time.monotonic() - begin


def write(path: Path, rows: int, width: int) -> Path:
    points = np.random.default_rng(0).normal(size=(rows, width)).astype(np.float32)
    frame = pd.DataFrame(points, columns=[f"x{index}" for index in range(width)])
    frame.insert(0, "label", [("sport", "politics", "weather")[row % 3] for row in range(rows)])
    frame.to_parquet(path)
    return path


def transformed(page: Page) -> None:
    """From Explore to What-if with the same set, up to the files to take home."""
    page.get_by_role("link", name="Transform in What-if").click()
    prepare = page.get_by_role("button", name="Prepare files")
    expect(prepare).to_be_visible(timeout=LONG)
    expect(page.get_by_text("Read-outs, before and after")).to_be_visible()
    prepare.click()
    expect(page.get_by_role("button", name="Matrix (numpy)")).to_be_visible(timeout=LONG)


def downloaded(page: Page, button: str) -> bytes:
    with page.expect_download(timeout=LONG) as waiting:
        page.get_by_role("button", name=button).click()
    return waiting.value.path().read_bytes()


def six_lines(archive: zipfile.ZipFile, points: NDArray[Any], folder: Path) -> NDArray[Any]:
    """The vectors that the code in the archive's README produces, run verbatim."""
    (code,) = re.findall("```python\n(.*?)```", archive.read("README.md").decode(), re.DOTALL)
    archive.extractall(folder)
    np.save(folder / "vectors.npy", points)
    (folder / "lines.py").write_text(code)
    with contextlib.chdir(folder):
        runpy.run_path("lines.py")
    return np.asarray(np.load(folder / "image.npy"))


def test_vectors_with_labels_are_uploaded_coloured_transformed_and_restored(
    server: Server, open_tab: OpenTab, tmp_path: Path
) -> None:
    page = open_tab(f"{server.url}/explore?explore_at=My+vectors", width=1440)
    upload = page.get_by_test_id("stFileUploaderDropzoneInput").first
    expect(upload).to_be_attached(timeout=LONG)
    upload.set_input_files(write(tmp_path / "mine.parquet", 5_000, 96))
    print(f"first picture of 5,000 vectors {drawn(page, 5_000):.2f} s after the upload began")
    expect(page.get_by_text("5,000 vectors of 96 dimensions, with label").first).to_be_visible()
    becomes(page, lambda: page.evaluate(COLOURS), 3)
    expect(page).to_have_url(re.compile("explore_vectors=[0-9a-f]{32}"))

    address = steady(page, lambda: page.url)

    transformed(page)
    archive = zipfile.ZipFile(io.BytesIO(downloaded(page, "Matrix (numpy)")))
    expect(page.get_by_text("their model is unknown")).to_be_visible()  # vectors from a file: no model to export
    (key,) = re.findall("whatif_either=([0-9a-f]{32})", page.url)
    uploaded = vectors.load(key).points
    fitted = posthoc.zca(strength=0.5).fit(uploaded[engine_of(key).source.fit])
    np.testing.assert_allclose(six_lines(archive, uploaded, tmp_path), fitted.transform(uploaded), rtol=1e-4, atol=1e-5)
    origin = json.loads(archive.read("origin.json"))
    assert origin["key"] == key and origin["chain"] == "zca:strength=0.5"
    assert any(effect["name"] == "k-NN accuracy" and effect["low"] <= effect["high"] for effect in origin["effects"])

    again = open_tab(address, width=1440)  # fresh sessions
    drawn(again, 5_000)
    becomes(again, lambda: again.evaluate(COLOURS), 3)
    expect(again.get_by_test_id("stMetricValue").first).to_be_visible()
    other = open_tab(page.url, dark=True, width=390)
    expect(other.get_by_text("mine.parquet: 5,000 vectors of 96 dimensions, with label")).to_be_visible(timeout=LONG)
    expect(other.get_by_role("button", name="Prepare files")).to_be_visible(timeout=LONG)
    assert other.get_by_role("slider", name="Strength s").input_value() == "0.5"


def encoded(rows: int) -> NDArray[Any]:
    """The newest stored set of so many vectors; the texts it was made from are stored, too."""
    folders = sorted(vectors.STORE.root.glob("results/*/"), key=lambda folder: folder.stat().st_mtime)
    stored = [vectors.sets.load_any(folder.name) for folder in folders]
    return [found.points for found in stored if isinstance(found, vectors.VectorSet) and len(found.points) == rows][-1]


def test_twenty_pasted_sentences_become_a_map_and_a_model(server: Server, open_tab: OpenTab, tmp_path: Path) -> None:
    page = open_tab(f"{server.url}/explore?explore_at=My+texts", width=1440)
    lines = [f"The {animal} {verb} in the garden." for animal in ("cat", "dog", "bird", "fox") for verb in
             ("sleeps", "eats", "runs", "hides", "waits")]  # fmt: skip
    field = page.get_by_role("textbox", name="Texts, one per line")
    expect(field).to_be_visible(timeout=LONG)
    field.fill("\n".join(lines))
    field.press("Control+Enter")
    expect(page.get_by_text("pasted texts: 20 texts").first).to_be_visible(timeout=LONG)
    page.get_by_role("button", name="Analyse").click()
    drawn(page, 20)
    expect(page.get_by_text("The first 20 of 20 texts of pasted texts").first).to_be_visible()

    again = open_tab(steady(page, lambda: page.url), width=1440)
    drawn(again, 20)
    displayed = again.evaluate(
        "() => document.querySelector('.ivz-map-points').layer.parts.flatMap((part) => [...part.texts])"
    )
    assert sorted(displayed) == sorted(lines)

    transformed(page)
    page.get_by_role("button", name="Build the model").click()
    expect(page.get_by_role("button", name="Model (sentence-transformers)")).to_be_visible(timeout=LONG)
    with zipfile.ZipFile(io.BytesIO(downloaded(page, "Model (sentence-transformers)"))) as model:
        model.extractall(tmp_path / "model")
    with zipfile.ZipFile(io.BytesIO(downloaded(page, "Matrix (numpy)"))) as matrix:
        expected = six_lines(matrix, encoded(20), tmp_path)
    from sentence_transformers import SentenceTransformer

    vectors_of_model = SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(lines)
    assert np.abs(vectors_of_model - expected).max() <= 1e-5 * np.linalg.norm(expected, axis=1).max()
