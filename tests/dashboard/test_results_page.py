"""Results: the table, the filters and their address, downloads, links; failed and collapsed runs stay visible."""

from __future__ import annotations

import io
import json
import re

import pandas as pd
import pytest

from dashboard.results import sections
from dashboard.shared import downloads, measures, tables
from isoviz import metrics
from isoviz.demo import PRESETS_RECORD
from isoviz.runs.planning import PRESETS, Preset
from isoviz.runs.store import Store
from tests.dashboard.conftest import Offered, OpenPage
from tests.dashboard.made_up import config, fail, finish, row
from tests.dashboard.reading import drawn, mounted


@pytest.fixture
def filled(store: Store) -> Store:
    """Two seeds of the baseline, one finished and one diverged I-STAR run, in two launches."""
    for seed, value in enumerate((0.5, 0.75)):
        finish(store, config("baseline", seed), value, 0.25, group="first")
    finish(
        store, config("istar", 0, {"lam": 1}), 0.625, 0.5, group="second", collapsed="predicts one class", matthews=0.0
    )
    fail(store, config("istar", 1, {"lam": 1}), group="second", diverge=True)
    return store


def test_tables_lists_files_and_another_metric(open_page: OpenPage, filled: Store, offered: Offered) -> None:
    page = open_page("results", results_group="all")
    assert not page.exception
    table = page.dataframe[0].value
    lines = {line["Method"]: line for line in table.to_dict("records")}
    assert list(lines) == ["Baseline", "I-STAR λ = 1", "(majority)", "(bag of words)"]
    assert (lines["Baseline"]["Mean"], lines["Baseline"]["n"]) == (0.625, 2)
    assert lines["Baseline"]["Each seed"] == "0: 0.500 · 1: 0.750"
    assert lines["I-STAR λ = 1"]["Remarks"] == "1 diverged, 1 of 1 collapsed: predicts one class"
    # in no mean
    assert lines["I-STAR λ = 1"]["n"] == 0 and lines["I-STAR λ = 1"]["Each seed"] == "0: 0.625 (collapsed)"
    assert (lines["(majority)"]["Mean"], lines["(bag of words)"]["Mean"]) == (0.5, 0.625)

    (strip,) = mounted(page)
    assert strip["name"] == "isoviz-seeds-demo-acceptability-accuracy"
    (drawn_values, *_) = json.loads(strip["spec"])["data"]
    runs = pd.read_parquet(io.BytesIO(offered["runs.parquet"]()))
    assert runs[runs["title"] == "Baseline"]["value"].tolist()[::-1] == drawn_values["x"] == [0.5, 0.75]
    means = pd.read_parquet(io.BytesIO(offered["results-demo-acceptability-accuracy.parquet"]()))
    assert means["mean"].tolist()[0] == 0.625 and means["mean"].isna().tolist() == [False, True]
    assert {name.rpartition(".")[2] for name in offered if name.startswith("results-demo-")} == {
        "csv",
        "parquet",
        "tex",
    }

    table = page.dataframe[-1].value
    assert len(table) == 4
    assert {link.partition("=")[2] for link in table["Run"]} == {run.id for run in filled.list()}
    assert table.set_index("Status").loc["diverged", "Remarks"].startswith("diverged: the loss term 'istar'")

    page.segmented_control(key="metric_demo/acceptability").set_value("matthews").run()
    table = page.dataframe[0].value  # without the baselines of the primary metric
    assert list(table["Method"]) == ["Baseline", "I-STAR λ = 1"] and list(table["Mean"])[:1] == [0.625]


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.slug)
def test_a_presets_question_is_answered_in_a_sentence_with_an_interval(
    open_page: OpenPage, store: Store, preset: Preset
) -> None:
    """With the runs that the preset gave when it was last recorded."""
    plan = {name: preset.plan[name] for name in ("epochs", "max_train", "max_length")}
    (task,) = preset.plan["tasks"]
    for run in json.loads(PRESETS_RECORD.read_text(encoding="utf-8"))["presets"][preset.slug]["runs"]:
        setting = config(run["method"], run["seed"], run["params"], task=task, **plan)
        finish(store, setting, run["score"], run["isoscore_star"], isoscore=run["isoscore"], collapsed=run["collapsed"])
    page = open_page("results")
    assert not page.exception
    answers = [line for text in page.markdown for line in text.value.replace("\\", "").splitlines()]
    interval = r"[+−]?\d\.\d{3} \[−?\d\.\d{3}, −?\d\.\d{3}\]"
    if preset.slug == "lambda-sweep":
        assert any(re.search(rf"Spearman's ρ of IsoScore\* with accuracy is {interval}", line) for line in answers)
    elif preset.slug == "isobn":
        assert any(re.search(rf"IsoBN β = 0.5 − Baseline: {interval}, 5 paired seeds", line) for line in answers)
    else:  # asks no question: one seed each
        assert sum("not enough seeds to tell" in line for line in answers) == 2


def test_filters_live_in_the_address(open_page: OpenPage, filled: Store) -> None:
    page = open_page("results", results_group="first")
    assert list(page.dataframe[0].value["Method"]) == ["Baseline", "(majority)", "(bag of words)"]
    page = open_page("results", results_group="second", results_status="diverged")
    assert list(page.dataframe[-1].value["Status"]) == ["diverged"]


def test_the_page_opens_on_the_newest_experiment(open_page: OpenPage, filled: Store) -> None:
    for query in ({}, {"results_group": "gone"}):
        page = open_page("results", **query)
        assert not page.exception and page.selectbox(key="results_group").value == "second"
        assert len(page.dataframe[-1].value) == 2
    finish(filled, config("baseline", 9), 0.5, 0.25)  # of no experiment
    assert open_page("results").selectbox(key="results_group").value == "all"


def test_columns_of_isotropy_match_the_catalogue_and_the_address_selects_them(
    open_page: OpenPage, filled: Store, offered: Offered
) -> None:
    page = open_page("results")
    every = {metric.heading for metric in measures.of_runs()}
    for table in (page.dataframe[0].value, page.dataframe[-1].value):
        assert every & set(table.columns) == {"IsoScore*"}  # what I-STAR acts on, and no other
    assert {metric.slug for metric in measures.of_runs()} <= set(pd.read_csv(io.BytesIO(offered["runs.csv"]())).columns)
    rank = metrics.get("effective_rank")
    page = open_page("results", results_isotropy=rank.title)
    assert not page.exception
    columns = set(page.dataframe[0].value.columns)
    assert {rank.heading, f"± s of {rank.heading}"} <= columns and "IsoScore*" not in columns


def test_a_reference_score_that_runs_do_not_share_is_left_out(filled: Store) -> None:
    runs = tables.runs_frame(filled.list())
    scores = [{"majority": 0.5, "bag_of_words": 0.5 + place / 100} for place in range(len(runs))]
    assert sections._levels("demo/acceptability", "accuracy", runs.assign(baselines=scores)) == [("majority", 0.5)]


def test_only_failed_runs_leave_idle_columns_out(open_page: OpenPage, store: Store) -> None:
    fail(store, config("isobn"))
    page = open_page("results")
    assert not page.exception
    table = page.dataframe[0].value
    assert table.iloc[0]["Remarks"] == "1 failed" and not {"Model", "Settings", "Difference"} & set(table.columns)
    assert drawn(page) == []


def test_csv_disarms_formulas() -> None:
    frame = tables.runs_frame([row("r", config(), name="=cmd()")])
    text = downloads.csv(frame).decode("utf-8-sig")
    assert "'=cmd()" in text and ",=cmd()" not in text
    unseen = ("", " ", "\u00a0", "\ufeff", "\u200b", "\u200d", "\u2060", "\u00ad", "\ufe0f", "\u3164", "\x00")
    bad = [f"{start}{sign}1+1" for start in unseen for sign in "=+-@＝﹢"]
    for text in (*bad, "@SUM(1)"):
        heading, cell = downloads.csv(pd.DataFrame({text: [text]})).decode("utf-8-sig").splitlines()
        assert heading == cell == f"'{text}"
    for mark in (";", "\t", "\r", "\n", "; "):
        text = downloads.csv(pd.DataFrame({"a": [f"x{mark}=HYPERLINK(1)"]})).decode("utf-8-sig")
        assert "'=HYPERLINK" in text or "' =HYPERLINK" in text
    numbers = ["+0.025", "-1.5", "+2e-7", "-1,000.5", "+12 %"]
    plain = downloads.csv(pd.DataFrame({"a b": ["x=1", "", "a-b", "x; y", "−1"], "n": numbers})).decode("utf-8-sig")
    assert "'" not in plain and "+0.025" in plain
