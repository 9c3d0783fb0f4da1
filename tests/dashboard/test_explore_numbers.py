"""Explore's numbers: their notes, the effect of few points, and their files."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
import streamlit as st

from dashboard.explore import numbers
from dashboard.shared import downloads, wording
from isoviz.exploring.results import ViewResult
from isoviz.jobs.results import FACTS, write_json
from isoviz.metrics.record import Reading
from tests.dashboard.conftest import Opened
from tests.dashboard.reading import drawn, errors, texts
from tests.measured import cloud


@pytest.fixture(autouse=True)
def _fresh_cache() -> None:
    st.cache_data.clear()


def test_a_number_tells_on_how_many_points_it_was_taken(opened: Opened, kept_view: ViewResult) -> None:
    n = kept_view.entry(2, "tokens").n
    more = {"explore_pooling": "tokens", "explore_measure": "IsoScore, unbiased"}
    page = opened(**more)
    rows = kept_view.facts["rows"]
    assert errors(page) == [] and f"(n = {rows} of {n}, d = " in texts(page)  # tokens of one row are not independent
    hover = next(line for line in drawn(page)[0]["data"] if line["name"] == "every token")["customdata"]
    assert hover[2] == [f"{rows} of {n}", kept_view.entry(2, "tokens").d]
    assert "drawn at random; the mean is of all" not in texts(page)

    facts = {**kept_view.facts, "token_sample": 30}
    write_json(kept_view.folder / FACTS, facts)
    note = "The matrix uses a random sample of 30 of these points; the mean uses all."
    assert note in texts(opened(**more))
    some = cloud("head", 5184, 4).with_readings({"twonn": Reading(value=3.0, points=2000)})
    assert numbers.points_of(some, "twonn") == "2,000 of 5,184"
    assert numbers.points_of(cloud("head", 5184, 4), "twonn") == "5,184"  # of a measure that is still pending


def test_limits_of_the_numbers_are_stated_beside_them(opened: Opened, kept_view: ViewResult) -> None:
    note = "below 5: IsoScore, participation ratio"
    page = opened()
    assert errors(page) == [] and "Cannot see the mean" in texts(page)
    assert "This checkpoint is an encoder alone" in texts(page)  # below "Output matrix"
    n, d = kept_view.entry(2, "cls").n, kept_view.entry(2, "cls").d
    assert note in texts(page) and f"Reads high with so few points: n/d = {n / d:.2g}." in texts(page)
    page = opened(explore_measure="Length of the mean vector")
    assert note not in texts(page) and "How far the centre of the cloud lies from the origin" in texts(page)
    entry = cloud("head", 2, 4, isoscore=0.5).with_readings({"twonn": Reading(undefined="it needs at least 3")})
    assert numbers.notes_on(entry, "twonn") == ["intrinsic dimension (TwoNN) is undefined: it needs at least 3"]


def test_isoscore_star_of_every_layer_and_of_all_together(opened: Opened, kept_view: ViewResult) -> None:
    chosen = {"explore_measure": "IsoScore*", "explore_layer": "1", "explore_pooling": "tokens"}
    page = opened(**chosen)
    assert errors(page) == []
    together = kept_view.together
    assert together is not None
    profile = drawn(page)[0]
    assert profile["layout"]["yaxis"]["title"]["text"] == "IsoScore*"
    lines = {trace["name"]: trace["y"] for trace in profile["data"]}
    assert lines["every token"] == [kept_view.entry(layer, "tokens").number("isoscore_star") for layer in range(3)]
    assert lines["first token [CLS]"] == [None] * 3
    assert [trace["showlegend"] for trace in profile["data"]] == [False, False, True]
    read = texts(page)
    value, n = wording.number(together.number("isoscore_star")), wording.number(together.n)
    assert f"Every token of layers 1 to 2 as one cloud (cloud layers): {value} (n = {n}, d = 16)" in read
    words = f"IsoScore*: {kept_view.facts['shrinkage']['words']}."
    assert words.startswith("IsoScore*: ζ = 0.2, Σ_S from ") and read.count(words) == 2  # here, and below all numbers
    assert "covariance of that layer's tokens in rows of the training split" in read
    shown = page.dataframe[0].value
    last = shown.iloc[-1]
    assert last["IsoScore*"] == together.number("isoscore_star") and last["n"] == together.n
    assert shown["Layer"].isna().sum() == 1 and "as one cloud" in read
    page = opened(explore_measure="IsoScore*")
    assert errors(page) == [] and "Layer 2, cls: undefined" in texts(page)
    assert "IsoScore* is undefined: Σ_S is of training tokens" in texts(page)


def test_numbers_behind_the_figures_are_files(opened: Opened, kept_view: ViewResult) -> None:
    table = numbers.figure_data(kept_view, 1, "mean")
    for name in ("sigma", "mean"):
        part = table[table.figure == name]
        assert part["at"].tolist() == list(range(len(part))) and set(part.layer) == {1}
        np.testing.assert_array_equal(part["value"], kept_view.array(1, "mean", name))
    spectra = table[table.figure == "ev"]
    assert set(spectra.layer) == {0, 1, 2} and spectra["at"].min() == 1
    np.testing.assert_array_equal(spectra[spectra.layer == 2]["value"], kept_view.array(2, "mean", "ev"))
    cosines = table[table.figure == "cosine"]
    pairs = kept_view.facts["rows"] * (kept_view.facts["rows"] - 1) // 2
    assert (cosines["at"].min(), cosines["at"].iloc[100], cosines["value"].sum()) == (-1, 0, pairs)
    back = pd.read_parquet(io.BytesIO(downloads.parquet(table)))
    pd.testing.assert_frame_equal(back, table)
    offered = [button.proto.label for button in opened().get("download_button")]
    assert offered.count("Parquet") == offered.count("CSV") >= 3  # of the map, of these figures, of all numbers


def test_downloads_hold_every_number(kept_view: ViewResult) -> None:
    together, first = kept_view.together, kept_view.entries[0]
    assert together is not None and first.number("isoscore") is None  # [CLS] before any layer is one point
    table = numbers.frame([*kept_view.entries, together])
    lines = [line.split(",") for line in downloads.csv(table).decode("utf-8-sig").splitlines()]
    assert len(lines) == 11 and lines[0][:5] == ["layer", "pooling", "n", "d", "isoscore"]
    assert lines[1][4] == "" and float(lines[2][4]) == kept_view.entries[1].number("isoscore")
    assert [line[0] for line in lines][-2:] == ["2", ""]
    back = pd.read_csv(io.BytesIO(downloads.csv(table)))
    assert back["isoscore_star"].iloc[-1] == together.number("isoscore_star")
    assert back["isoscore_star"].notna().sum() == 4  # three layers of tokens, and these
    text = numbers.latex(table, "a_model on 100 % of it")
    assert r"a\_model on 100 \% of it" in text and text.count(r"\\") == 11 and "$EV_1$" in text
    (last,) = [line for line in text.splitlines() if line.startswith("-- & tokens")]
    assert f"{together.number('isoscore_star'):.3f}" in last
