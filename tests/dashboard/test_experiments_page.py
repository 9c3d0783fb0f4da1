"""Experiments: the list, one of them with its tables and runs, and more seeds with one press."""

from __future__ import annotations

from isoviz.runs.store import Store
from tests.dashboard.conftest import OpenPage
from tests.dashboard.made_up import config, fail, finish
from tests.dashboard.reading import drawn, texts


def experiment(store: Store, name: str = "λ & friends") -> None:
    for seed in (0, 1):
        finish(store, config("baseline", seed), 0.5 + 0.0625 * seed, 0.25, group=name)
        finish(store, config("istar", seed, {"lam": 1}), 0.75, 0.5, group=name)


def test_every_experiment_is_listed_with_how_far_it_is(open_page: OpenPage, store: Store) -> None:
    experiment(store)
    fail(store, config("isobn"), group="another")
    finish(store, config("baseline", 9), 0.5, 0.25)  # of no experiment
    page = open_page("experiments")
    assert not page.exception
    lines = page.dataframe[0].value.set_index("Methods")
    assert lines.loc["IsoBN", ["Runs", "Finished", "Other"]].tolist() == [1, 0, "1 failed"]
    first = lines.loc["Baseline, I-STAR"] if "Baseline, I-STAR" in lines.index else lines.loc["I-STAR, Baseline"]
    assert first["Finished"] == 4 and "%CE%BB%20%26%20friends" in first["Experiment"]


def test_one_experiment_has_its_tables_and_runs(open_page: OpenPage, store: Store) -> None:
    experiment(store)
    page = open_page("experiments", experiment="λ & friends")
    assert not page.exception and page.title[0].value.replace("\\", "") == "λ & friends"
    shown = texts(page)
    assert "Experiment of 4 runs" in shown and "Do these methods differ?" in shown
    assert "Every run" in {heading.value for heading in page.header}
    assert len(drawn(page)) == 1  # every seed
    assert len(page.dataframe[-1].value) == 4


def test_four_seeds_more_are_four_of_every_setup(open_page: OpenPage, store: Store) -> None:
    experiment(store)
    page = open_page("experiments", experiment="λ & friends")
    assert "8 more runs (seeds 2 to 5)" in texts(page)
    page.button(key="experiment_more").click().run()
    assert not page.exception
    queued = store.list(status="queued")
    assert {row.group for row in queued} == {"λ & friends"}
    assert sorted((row.config.method, row.config.seed) for row in queued) == [
        (method, seed) for method in ("baseline", "istar") for seed in (2, 3, 4, 5)
    ]
    assert "8 more runs (seeds 6 to 9)" in texts(page)


def test_all_runs_of_an_experiment_are_stopped_and_failed_ones_tried_again(open_page: OpenPage, store: Store) -> None:
    ordered = store.create([config("baseline", seed) for seed in range(3)], group="ordered")
    (other,) = store.create([config("isobn")], group="another")
    page = open_page("experiments", experiment="ordered")
    page.button(key="queue_stop").click().run()
    assert not page.exception
    assert {store.get(run).status for run in ordered} == {"stopped"} and store.get(other).status == "queued"
    failed = fail(store, config("isobn", 1), group="ordered")
    page.run()
    page.button(key="queue_retry").click().run()
    assert not page.exception
    assert [row.status for row in store.list(group="ordered") if row.config.method == "isobn"] == ["queued"], failed


def test_an_unknown_name_says_so_and_lists_the_others(open_page: OpenPage, store: Store) -> None:
    experiment(store)
    page = open_page("experiments", experiment="gone")
    assert not page.exception and "“gone” not found" in page.warning[0].value
    assert len(page.dataframe) == 1
