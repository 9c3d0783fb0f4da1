"""What screens say of metrics: their cloud, their axis, and that one more metric is everywhere without a line of the dashboard."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dashboard.explore import numbers
from dashboard.shared import measures, tables
from isoviz import metrics
from isoviz.runs.store import Store
from tests.dashboard.conftest import Offered, OpenPage
from tests.dashboard.made_up import config, finish
from tests.dashboard.reading import drawn


def test_three_scores_in_one_figure_name_their_cloud() -> None:
    scores = [metric for metric in measures.of_runs() if measures.is_score(metric)]
    assert [measures.with_cloud(metric) for metric in scores] == [
        "IsoScore (head input)",
        "IsoScore* (all layers' tokens, ζ = 0.2)",
        "IsoScore, unbiased (head input)",
    ]
    assert measures.comparing().slug == "isoscore_star"
    assert {metric.slug: measures.cloud(metric) for metric in measures.of_runs() if "weights" in metric.kinds} == {
        "i1": "output weights",
        "i2": "output weights",
    }


def test_the_first_measure_is_of_what_the_methods_act_on() -> None:
    def first(*methods: str) -> str:
        return measures.default_for(methods).slug

    assert first("baseline", "isobn") == first("isobn", "isolayer", "flow") == "isoscore"
    assert first("baseline", "istar") == first("istar+isobn", "istar") == first("baseline") == "isoscore_star"
    assert (first("cosreg"), first("spectrum_exp"), first("batchnorm")) == ("mean_cosine", "i1", "mean_cosine")
    assert first("isobn", "istar") == measures.comparing().slug == first("no-such-method")


def test_one_more_metric_is_on_every_screen(
    open_page: OpenPage, store: Store, offered: Offered, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = metrics.get("effective_rank")
    new = replace(
        first, slug="evenness", title="Evenness", label="Even", latex="$E$", decimals=2, headline=True, place=1
    )
    more = {**metrics.catalogue(), "evenness": new}
    monkeypatch.setattr(metrics, "catalogue", lambda: more)
    monkeypatch.setattr(metrics, "get", more.__getitem__)
    run = finish(store, config("baseline"), 0.5, 0.25)
    assert "evenness" in tables.run_columns() and numbers.headings()["evenness"] == "Even"
    results = open_page("results", results_isotropy="Evenness")
    assert {"Even", "± s of Even"} <= set(results.dataframe[0].value.columns)
    assert "Even" in results.dataframe[1].value.columns and b"evenness" in offered["runs.csv"]()
    assert "& Even" in offered["results-demo-acceptability-accuracy.tex"]()
    tradeoffs = open_page("tradeoffs", tradeoffs_isotropy="Evenness")
    assert tradeoffs.selectbox(key="tradeoffs_isotropy").value == "Evenness" and drawn(tradeoffs) == []  # not measured
    live = json.loads(open_page("live", run=run).get_by_key("live-lines").proto.json)
    (declared,) = [metric for metric in live["metrics"] if metric["slug"] == "evenness"]
    assert (declared["title"], declared["cloud"], declared["axis"]) == ("Evenness", "head", "log")
