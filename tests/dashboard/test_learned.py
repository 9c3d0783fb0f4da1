"""The banner "Nothing was learned": on every page that compares runs, and in what they offer as files."""

from __future__ import annotations

from dashboard.shared import run_lists, tables
from isoviz.comparisons import nothing_learned
from isoviz.runs.store import Store
from tests.dashboard.conftest import OpenPage
from tests.dashboard.made_up import config, finish
from tests.dashboard.reading import texts


def test_the_best_simple_approach_is_the_one_to_beat() -> None:
    simple = {"majority": 0.5, "bag_of_words": 0.64, "random_weights": 0.578, "copied": None}
    warning = "Nothing was learned: no run beats bag of words (0.640). Do not compare."
    assert nothing_learned("demo/sentiment", [0.534, 0.64, None], simple) == warning
    assert nothing_learned("demo/sentiment", [0.6], simple).startswith("Nothing was learned: this run does not beat")
    assert nothing_learned("demo/sentiment", [0.534, 0.641], simple) == ""
    assert nothing_learned("demo/sentiment", [], simple) == nothing_learned("demo/sentiment", [0.1], {}) == ""
    assert nothing_learned("no/such-task", [0.1], simple) == ""
    assert "(3.06)" in nothing_learned("demo/translation", [1.0, 2.0], {"bag_of_words": 3.055})


def filled(store: Store, *values: float, **more: str) -> list[str]:
    return [finish(store, config("baseline", seed, **more), value, 0.25) for seed, value in enumerate(values)]


def test_one_sentence_for_each_model_and_task(store: Store) -> None:
    filled(store, 0.55, 0.6)
    runs = tables.runs_frame(store.summaries())
    assert run_lists.warnings(runs) == ["Nothing was learned: no run beats bag of words (0.625). Do not compare."]
    assert run_lists.with_warnings(runs[["run"]], run_lists.warnings(runs))["warning"].str.startswith("Nothing").all()
    filled(store, 0.7, task="demo/paraphrase")
    (warning,) = run_lists.warnings(tables.runs_frame(store.summaries()))
    assert warning.startswith("demo/tiny-bert on demo/acceptability: Nothing was learned")
    finish(store, config("isobn"), 0.7, 0.25)
    runs = tables.runs_frame(store.summaries())
    assert run_lists.warnings(runs) == [] and list(
        run_lists.with_warnings(runs[["run"]], run_lists.warnings(runs))
    ) == ["run"]


def test_another_metric_does_not_hide_it(store: Store) -> None:
    finish(store, config(), 0.55, 0.25, matthews=0.9)
    runs = tables.with_metric(tables.runs_frame(store.summaries()), "matthews")
    assert len(run_lists.warnings(runs)) == 1


def test_tradeoffs_carries_it(open_page: OpenPage, store: Store) -> None:
    """Results too: see `test_comparison`."""
    filled(store, 0.55, 0.6)
    assert texts(open_page("tradeoffs")).count("Nothing was learned") == 1
