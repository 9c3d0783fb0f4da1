"""Explore's numbers: their notes, the effect of few points, and their files."""

from __future__ import annotations

import io
import shutil

import numpy as np
import pandas as pd
import pytest
import streamlit as st

from dashboard.explore import numbers
from dashboard.shared import downloads, wording
from isoviz.exploring import results
from isoviz.exploring.request import ViewRequest
from isoviz.exploring.results import ViewResult
from isoviz.jobs.progress import write_json
from isoviz.jobs.results import FACTS
from isoviz.metrics.record import Reading
from tests.dashboard.conftest import Opened
from tests.dashboard.reading import drawn, errors, key_for, texts
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


def test_mean_correlation_of_every_layer(opened: Opened, kept_view: ViewResult) -> None:
    page = opened(explore_measure="Mean |ρ|")
    line = next(line for line in drawn(page)[0]["data"] if line["name"] == "mean of the tokens")
    assert (
        line["y"] == [kept_view.entry(layer, "mean").number("abs_correlation") for layer in range(3)]
        and errors(page) == []
    )


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


def test_cut_axis_is_reported_with_the_outlier_and_its_value(
    opened: Opened,
    kept_view: ViewResult,
    explored: tuple[ViewRequest, dict, dict],  # type: ignore[type-arg]
) -> None:
    request, facts, arrays = explored
    mean = np.linspace(-0.5, 0.5, 16, dtype=np.float32)
    mean[4] = -7.25
    entries = [
        {**entry, "dimensions": entry["dimensions"] | {"outliers": [4] if entry["cloud"] == "layer_2" else []}}
        for entry in facts["entries"]
    ]
    shutil.rmtree(kept_view.folder)
    key = key_for(request)
    changed = arrays | {results.array_name(2, "cls", "mean"): mean}
    results.STORE.publish(key, {**facts, "entries": entries}, changed)
    page = opened()
    assert errors(page) == []
    note = "Rogue dimensions by mean: 4; the axis is cut to −0.7 to 0.7, to keep the rest readable; beyond it: dimension 4 at −7.25."
    assert note in texts(page)


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
    table = numbers.frame(kept_view.entries)
    lines = downloads.csv(table).decode("utf-8-sig").splitlines()
    assert len(lines) == 10 and lines[0].startswith("layer,pooling,n,d,isoscore,")
    assert float(lines[2].split(",")[4]) == kept_view.entries[1].number("isoscore")
    assert (
        kept_view.entries[0].number("isoscore") is None and lines[1].split(",")[4] == ""
    )  # [CLS] before any layer is one point
    text = numbers.latex(table, "a_model on 100 % of it")
    assert r"a\_model on 100 \% of it" in text and text.count(r"\\") == 10 and "$EV_1$" in text


def test_downloads_hold_all_layers_together(kept_view: ViewResult) -> None:
    assert kept_view.together is not None
    table = numbers.frame([*kept_view.entries, kept_view.together])
    back = pd.read_csv(io.BytesIO(downloads.csv(table)))
    assert len(back) == 10 and back["layer"].isna().tolist() == [False] * 9 + [True]
    assert back["isoscore_star"].iloc[-1] == kept_view.together.number("isoscore_star")
    assert back["isoscore_star"].notna().sum() == 4  # three layers of tokens, and these
    assert [line.split(",")[0] for line in downloads.csv(table).decode("utf-8-sig").splitlines()][-2:] == ["2", ""]
    text = numbers.latex(table, numbers.of_shrinkage(kept_view.facts["shrinkage"]))
    assert r"IsoScore*: $\zeta$ = 0.2, $\Sigma_S$ from " in text and "IsoScore*" in text.split(r"\toprule")[1]
    (last,) = [line for line in text.splitlines() if line.startswith("-- & tokens")]
    assert f"{kept_view.together.number('isoscore_star'):.3f}" in last
