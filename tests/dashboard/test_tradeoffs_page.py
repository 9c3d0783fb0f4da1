"""Trade-offs: three figures from finished runs, filling in; the same figure while nothing changed."""

from __future__ import annotations

import io

import pandas as pd
import pytest

from dashboard.tradeoffs import sections as tradeoffs
from isoviz.runs.store import Store
from tests.dashboard.conftest import Offered, OpenPage
from tests.dashboard.made_up import config, finish
from tests.dashboard.reading import drawn, mounted
from tests.dashboard.saved import saved


def sweep(store: Store) -> None:
    for lam, star in ((-1, 0.125), (1, 0.5)):
        finish(store, config("istar", 0, {"lam": lam}), 0.75, star, group="sweep")
    finish(store, config("baseline"), 0.5, 0.25, group="sweep")


def marks(figure: dict[str, object]) -> int:
    """Marks with a run behind them."""
    return sum(len(trace["customdata"]) for trace in figure["data"] if "customdata" in trace)  # type: ignore[attr-defined]


def test_three_figures_with_one_mark_per_run_that_are_saved_under_names_that_say_what_they_are(
    open_page: OpenPage, store: Store, offered: Offered
) -> None:
    sweep(store)
    page = open_page("tradeoffs")
    assert [marks(figure) for figure in drawn(page)] == [3, 2, 2]
    assert [figure["name"] for figure in mounted(page)] == [
        f"isoviz-{kind}-demo-acceptability-accuracy" for kind in ("tradeoff", "against_value", "against_isoscore_star")
    ]
    for ending, read in ((".csv", pd.read_csv), (".parquet", pd.read_parquet)):
        points = read(io.BytesIO(offered[f"isoviz-tradeoffs-demo-acceptability-accuracy{ending}"]())).set_index("lam")  # type: ignore[operator]
        assert points.loc[[-1, 1], "isoscore_star"].tolist() == [0.125, 0.5]
        assert sorted(points["accuracy"]) == [0.5, 0.75, 0.75]
    content = offered["isoviz-trade-offs-demo-acceptability.html"]()
    assert "Spearman" in str(content)
    page_file = saved(content)
    assert [marks(figure) for figure in page_file.figures] == [3, 2, 2]
    assert sorted(page_file.tables["Points"]["isoscore_star"]) == [0.125, 0.25, 0.5]
    assert page_file.codes["Restores this page in the app"].startswith("/tradeoffs")


def test_further_validation_splits_are_offered_where_runs_have_them(open_page: OpenPage, store: Store) -> None:
    own = ["accuracy", "macro-f1"]
    finish(store, config(task="glue/mnli", data="x"), 0.5, 0.25)
    field = open_page("tradeoffs").selectbox(key="tradeoffs_metric")
    assert field.options[:2] == own and "accuracy_mismatched" not in field.options
    finish(store, config("istar", 1, {"lam": 1}, task="glue/mnli", data="x"), 0.5, 0.25, accuracy_mismatched=0.75)
    page = open_page("tradeoffs")
    field = page.selectbox(key="tradeoffs_metric")
    assert field.options[:2] == own and "accuracy_mismatched" in field.options
    field.set_value("accuracy_mismatched").run()
    assert next(marks(figure) for figure in drawn(page)) == 1


def test_a_new_point_appears_keeps_the_zoom_and_an_unchanged_figure_stays_the_same(
    open_page: OpenPage, store: Store
) -> None:
    sweep(store)
    store.create([config("istar", 2, {"lam": 3})])
    page = open_page("tradeoffs")
    before, revision = mounted(page), drawn(page)[0]["layout"]["uirevision"]
    assert mounted(page.run()) == before
    finish(store, config("istar", 3, {"lam": 3}), 0.5, 0.625)
    assert [marks(figure) for figure in drawn(page.run())] == [4, 3, 3]
    assert drawn(page)[0]["layout"]["uirevision"] == revision
    page.selectbox(key="tradeoffs_metric").set_value("matthews").run()
    assert drawn(page)[0]["layout"]["uirevision"] != revision


def test_the_correlation_is_stated_within_the_task_and_overall(open_page: OpenPage, store: Store) -> None:
    for level, task in ((0.6, "demo/acceptability"), (0.8, "demo/paraphrase")):
        for lam in range(1, 9):
            finish(store, config("istar", 0, {"lam": lam}, task=task), level - lam / 100, level / 2 + lam / 100)
    page = open_page("tradeoffs")
    paragraphs = [str(element.value).replace("\\", "") for element in page.markdown]
    assert any(
        "Over 8 settings of one task, Spearman's ρ of IsoScore* with accuracy is −1.000" in text for text in paragraphs
    )
    pooled = next(text for text in paragraphs if text.startswith("All models and tasks"))
    assert "Over 16 settings of 2 tasks, within each of them" in pooled and "Simpson's paradox" in pooled


def test_a_click_on_a_mark_opens_its_run(open_page: OpenPage, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep(store)
    run = store.list()[0].id
    monkeypatch.setattr(tradeoffs.figure, "draw", lambda *_, **options: run if options["opens_runs"] else None)
    page = open_page("tradeoffs")
    assert not page.exception and page.title[0].value == store.get(run).name
