"""The Ruler page without a browser: full at first sight, its fields, two sentences and the six lines, own sets, bad input."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.ruler import figures, form
from dashboard.shared import menu, wording
from isoviz import vectors
from isoviz.exploring.jobs import QUESTIONS, SENTENCES
from isoviz.jobs import queue
from isoviz.jobs.queue import JobState
from isoviz.models import sources
from isoviz.operations import jobs
from isoviz.operations.jobs import RULER, SetRequest
from isoviz.readouts.ruler import Ruler, near_misses
from isoviz.vectors import VectorSet, demo_sets
from tests.dashboard.conftest import OpenPage
from tests.dashboard.reading import drawn, errors, texts
from tests.dashboard.saved import saved

SIMILARITY = demo_sets.RECORDED["demo/similarity"]
OWN = {"ruler_set": menu.OWN_SET}


def recorded() -> Ruler:
    ruler = jobs.find(SetRequest(SIMILARITY))
    assert ruler is not None
    return ruler


def line(page: AppTest, name: str) -> float:
    """Where the figure's vertical line is."""
    (figure,) = drawn(page)
    x: list[float] = next(trace["x"] for trace in figure["data"] if trace["name"] == name)
    assert x[0] == x[1]
    return x[0]


def made_set(n: int = 60, **columns: object) -> str:
    points = np.random.default_rng(0).normal(size=(n, 8)) + 1
    return vectors.keep(VectorSet(points, pd.DataFrame(columns, index=range(n)), name="made"))


def test_the_first_sight_is_full(open_page: OpenPage, offered: dict[str, Callable[[], bytes]]) -> None:
    page = open_page("ruler")
    ruler = recorded()
    related = ruler.related
    assert errors(page) == [] and related is not None and related.threshold is not None
    assert page.number_input(key="ruler_cosine").value == 0.62 and ruler.read(0.62).sentence in texts(page)
    assert line(page, figures.YOURS) == 0.62 and line(page, figures.THRESHOLD) == related.threshold.cosine
    assert f"n = {ruler.rows} of {ruler.n:,} rows, d = {ruler.d}" in texts(page) and ruler.protocol in texts(page)
    assert ruler.relation is not None and ruler.relation in texts(page)
    transforms, floor = (frame.value for frame in page.dataframe)
    assert transforms["AUC"].tolist() == [one.auc for one in ruler.variants]
    assert floor["Cosine"].tolist() == [level.cosine for level in ruler.floor]
    assert Ruler.model_validate_json(offered["ruler.json"]()) == ruler and "pair.npy" not in offered
    content = next(make for name, make in offered.items() if name.endswith(".html"))()
    assert f"From {related.threshold.cosine:.3f} on" in str(content)
    page_file = saved(content)
    assert page_file.figures[0]["data"] == drawn(page)[0]["data"]
    floor = page_file.tables["Quantiles of the cosines of unrelated pairs"]
    np.testing.assert_allclose(floor["Cosine"], [level.cosine for level in ruler.floor], rtol=5e-4)
    shares = pd.read_csv(io.BytesIO(offered["isoviz-ruler-demo-similarity.csv"]()))
    assert shares[["unrelated", "related"]].sum().tolist() == pytest.approx([1, 1])
    assert shares["probability"].is_monotonic_increasing


def test_a_search_says_whether_its_best_hit_is_right(open_page: OpenPage) -> None:
    page = open_page("ruler", ruler_set=demo_sets.TITLES[demo_sets.RETRIEVAL])
    ruler = jobs.find(SetRequest(demo_sets.RECORDED[demo_sets.RETRIEVAL]))
    assert errors(page) == [] and ruler is not None and ruler.hits is not None and ruler.hits.threshold is not None
    assert "Is my best hit right?" in texts(page) and ruler.hits.advice in texts(page)
    assert (
        page.number_input(key="ruler_share").value is None
        and line(page, figures.THRESHOLD) == ruler.hits.threshold.cosine
    )
    assert "P(best hit is relevant)" in [trace.get("name") for trace in drawn(page)[0]["data"]]


def test_share_and_precision_are_measured_and_what_does_not_depend_on_them_stays(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, jobs_here: list[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(queue, "start", lambda kind, key, *_, **__: JobState("running", key))
        patch.setattr(queue, "look", lambda kind, key: JobState("running" if kind is RULER else "none", key))
        page = open_page("ruler", ruler_share="10")
        assert errors(page) == [] and page.button(key="ruler_measuring") and len(drawn(page)) == 1
        assert recorded().read(0.62).sentence not in texts(page) and "ruler.json" not in texts(page)
    page.number_input(key="ruler_precision").set_value(80.0).run()
    ruler = jobs.find(SetRequest(SIMILARITY, share=0.1, precision=0.8))
    assert jobs_here == ["ruler"] and ruler is not None and ruler.related is not None
    assert ruler.related.threshold is not None and ruler.related.threshold != recorded().related.threshold  # type: ignore[union-attr]
    assert line(page, figures.THRESHOLD) == ruler.related.threshold.cosine
    floors = [[level.cosine for level in one.floor] for one in (ruler, recorded())]
    assert floors[0] == pytest.approx(floors[1], rel=1e-4)


def test_what_separates_nothing_says_so(open_page: OpenPage, jobs_here: list[str]) -> None:
    key = made_set(label=["a", "b", "c"] * 20)
    page = open_page("ruler", **OWN, ruler_either=key)
    assert errors(page) == [] and jobs_here == ["ruler"]
    assert "No threshold separates these pairs" in texts(page)
    assert figures.THRESHOLD not in [trace["name"] for trace in drawn(page)[0]["data"]]
    page.selectbox(key="ruler_known").set_value("not known").run()
    assert errors(page) == [] and "Related pairs are not known" in texts(page)
    assert list(page.dataframe[0].value) == ["Vectors", "Floor (99 %)"]
    assert jobs.find(SetRequest(key, "none")).related is None  # type: ignore[union-attr]
    assert not [field for field in page.text_input if field.key == "ruler_first"]  # their encoder is unknown


def test_a_score_that_no_pair_has_is_refused_beside_its_field(open_page: OpenPage, jobs_here: list[str]) -> None:
    page = open_page("ruler", ruler_from="9")
    assert len(errors(page)) == 1 and "at least 10 related pairs" in errors(page)[0]
    page.number_input(key="ruler_from").set_value(3.5).run()
    ruler = jobs.find(SetRequest(SIMILARITY, related_from=3.5))
    assert errors(page) == [] and ruler is not None and ruler.related is not None
    assert ruler.related.pairs > recorded().related.pairs  # type: ignore[union-attr]


def keep_sentences(texts: Sequence[str], points: Any) -> None:
    """The vectors of sentences, where the page finds them."""
    source = sources.resolve("demo/tiny-bert")
    request = {
        "model": source.name,
        "fingerprint": source.fingerprint,
        "layer": 2,
        "pooling": "mean",
        "max_length": 256,
    }
    key = queue.content_key(SENTENCES, {**request, "texts": [list(texts)]})
    QUESTIONS.publish(key, {"tokens": []}, {"points": np.asarray(points, np.float32)})


def test_near_misses_are_counted_at_the_threshold_and_drawn(open_page: OpenPage) -> None:
    points = np.random.default_rng(0).normal(size=(len(near_misses.texts()), 128)) + 2.0
    keep_sentences(near_misses.texts(), points)
    page = open_page("ruler", ruler_near="true")
    threshold = recorded().related.threshold.cosine  # type: ignore[union-attr]
    sentence = near_misses.near_misses(points.astype(np.float32)).sentence(threshold)
    assert sentence in wording.unmarked(" ".join(each.value for each in page.markdown))
    assert "near misses" in {trace["name"] for figure in drawn(page) for trace in figure["data"]}


def test_sentences_that_cannot_be_read(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_sentences(("A cat sat.", "A dog ran."), np.zeros((2, 128)))
    assert "all zeros" in errors(open_page("ruler", ruler_first="A cat sat.", ruler_second="A dog ran."))[0]
    long = "a" * (form.MOST_LETTERS + 1)
    assert "At most 1,000 characters (got 1,001)." in errors(open_page("ruler", ruler_first=long))


def test_a_viewer_sees_the_recorded_rulers_and_may_start_none(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOVIZ_READ_ONLY", "1")
    page = open_page("ruler", ruler_share="20")
    assert errors(page) == [] and "This server is read-only" in texts(page) and len(drawn(page)) == 1
    assert recorded().read(0.62).sentence in texts(open_page("ruler"))
