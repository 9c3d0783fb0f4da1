"""Tables: means over seeds, counts, notes on unfinished and collapsed runs; the banner “Nothing was learned”."""

from __future__ import annotations

import math

import pandas as pd

from dashboard.shared import run_lists, tables
from isoviz.runs.store import Store
from tests.dashboard.made_up import config, finish, result, row


def frame(*rows: object) -> pd.DataFrame:
    return tables.runs_frame(rows)  # type: ignore[arg-type]


def test_run_line_names_metric_and_isotropy() -> None:
    (line,) = frame(row("r1", config("istar", 3, {"lam": 1}), outcome=result(0.875, 0.25, isoscore=0.125))).to_dict(
        "records"
    )
    assert (line["metric"], line["value"], line["seed"]) == ("accuracy", 0.875, 3)
    assert (line["isoscore"], line["isoscore_star"], line["ev_1"], line["n"], line["d"]) == (0.125, 0.25, 0.5, 500, 128)
    assert (line["title"], line["variant"], line["problem"]) == ("I-STAR", "λ = 1", "")
    assert line["metrics"] == {"accuracy": 0.875, "matthews": 0.875}  # loss and epoch are no task metrics


def test_summary_is_mean_and_sample_deviation_with_every_seed() -> None:
    runs = [
        row(f"r{seed}", config(seed=seed), outcome=result(value, 0.5)) for seed, value in enumerate((0.5, 0.75, 1.0))
    ]
    (line,) = tables.summary(frame(*runs)).to_dict("records")
    assert (line["mean"], line["sd"], line["n"]) == (0.75, 0.25, 3)
    assert line["seeds"] == "0: 0.500 · 1: 0.750 · 2: 1.000"
    assert (line["isoscore_star"], line["isoscore_star_sd"], line["seconds"], line["remarks"]) == (0.5, 0.0, 5.0, "")


def test_unfinished_and_collapsed_runs_are_named_not_dropped() -> None:
    runs = [
        row("r1", config(seed=0), outcome=result(0.75, 0.5)),
        row("r2", config(seed=1), outcome=result(0.5, 0.5, collapsed="predicts one class")),
        row("r3", config(seed=2), "failed", error={"message": "out of memory"}),
        row("r4", config(seed=3), "diverged", error={"message": "the loss term 'task' became non-finite at step 7"}),
    ]
    table = frame(*runs)
    assert list(table["problem"]) == [
        "",
        "collapsed: predicts one class",
        "failed: out of memory",
        "diverged: the loss term 'task' became non-finite at step 7",
    ]
    (line,) = tables.summary(table).to_dict("records")
    assert (line["n"], line["mean"]) == (1, 0.75)  # the collapsed one is in no mean
    assert line["remarks"] == "1 failed, 1 diverged, 1 of 2 collapsed: predicts one class"


def test_a_value_off_the_scale_is_no_place_on_it() -> None:
    """I-STAR's layer 0 means all layers: a level line beside layers 1 and 2, named by its value."""
    runs = [row(f"r{at}", config("istar", 0, {"lam": 1, "layer": at}), outcome=result(0.75, 0.5)) for at in range(3)]
    points = tables.points(
        frame(*runs, row("b", config(), outcome=result(0.5, 0.25))), "accuracy", "isoscore_star", "layer"
    )
    of_runs = {line["run"]: line for line in points.to_dict("records")}
    assert math.isnan(of_runs["r0"]["at"]) and math.isnan(of_runs["b"]["at"])
    assert (of_runs["r1"]["at"], of_runs["r2"]["at"]) == (1, 2)
    assert of_runs["r1"]["line"] == of_runs["r2"]["line"] != of_runs["r0"]["line"]
    assert of_runs["r0"]["settings"] == "l = 0" and of_runs["r1"]["settings"] == ""


def test_a_repeated_seed_counts_once_with_its_newest_run() -> None:
    runs = [row(run, config(seed=0), outcome=result(value, 0.5)) for run, value in (("r1", 0.25), ("r2", 0.75))]
    (line,) = tables.summary(frame(*runs)).to_dict("records")
    assert (line["n"], line["mean"], line["remarks"]) == (1, 0.75, "1 repeated seed not counted")


def test_summary_orders_methods_baseline_first_and_parameters_by_value() -> None:
    runs = [
        row("r1", config("istar", 0, {"lam": 1}), outcome=result(0.5, 0.5)),
        row("r2", config("istar", 0, {"lam": -5}), outcome=result(0.5, 0.5)),
        row("r3", config("baseline"), outcome=result(0.5, 0.5)),
    ]
    assert list(tables.summary(frame(*runs))["variant"]) == ["", "λ = −5", "λ = 1"]


def test_points_are_finished_runs_with_both_coordinates() -> None:
    runs = [
        row("r1", config("istar", 0, {"lam": -1}), outcome=result(0.75, 0.25)),
        row("r2", config("baseline"), outcome=result(0.5, 0.5)),
        row("r3", config("istar", 1, {"lam": 1}), outcome=result(0.5, None)),
        row("r4", config("istar", 2, {"lam": 1}), "failed"),
    ]
    points = tables.points(frame(*runs), "accuracy", "isoscore_star", "lam")
    assert list(points["run"]) == ["r1", "r2"]
    assert points["at"].tolist()[0] == -1 and math.isnan(points["at"].tolist()[1])
    assert tables.points(frame(*runs), "f1", "isoscore_star", "lam").empty  # a metric these runs do not have


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
