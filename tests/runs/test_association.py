"""Isotropy against performance: settings are the points, tasks are not mixed, seeds are not independent evidence."""

from __future__ import annotations

import numpy as np

from dashboard.shared import tables
from isoviz.runs.comparisons import associate
from isoviz.runs.comparisons.association import SettingMean
from tests.dashboard.made_up import config, result, row

STAR = "isoscore_star"


def sweep(task, level, slope, settings=8, seeds=3, **more):
    """I-STAR at several λ; both numbers rise with the task's level."""
    return [
        row(
            f"{task}{lam}-{seed}{more}",
            config("istar", seed, {"lam": lam}, task=task, **more),
            outcome=result(level + slope * (lam + (lam == 3) * 1.5) / 100 + seed / 1000, level / 2 + lam / 100),
        )
        for lam in range(1, settings + 1)
        for seed in range(seeds)
    ]


def associated(rows, metric=None):
    return associate(tables.association_points(tables.runs_frame(rows), STAR, metric), STAR, metric)


def test_points_are_settings_not_seeds():
    correlation, sentence = associated(sweep("demo/sentiment", 0.4, -1))
    assert (correlation.points, correlation.tasks) == (8, 1)
    assert -1 < correlation.estimate < -0.9 and correlation.p < 0.01
    assert sentence.startswith("Over 8 settings of one task, Spearman's ρ of IsoScore* with performance is −0.9")
    assert sentence.endswith("one falls as the other rises.")
    few, sentence = associated(sweep("demo/sentiment", 0.4, -1, settings=2, seeds=10))
    assert (few.estimate, few.p) == (None, None) and "not enough settings to tell" in sentence


def test_tasks_are_not_mixed_and_simpson_is_named():
    rows = [*sweep("demo/sentiment", 0.2, -1), *sweep("demo/entailment", 0.5, -1), *sweep("demo/paraphrase", 0.8, -1)]
    correlation, sentence = associated(rows, "accuracy")
    assert correlation.estimate < -0.9 and correlation.mixed > 0.5
    assert len(correlation.by_task) == 3
    assert "3 tasks, within each of them" in sentence and "Simpson's paradox" in sentence


def verdict(performances):
    means = [SettingMean('{"model": "m", "task": "t"}', float(at), value) for at, value in enumerate(performances)]
    return associate(means, "isoscore").sentence.partition("): ")[2]


def test_a_hill_is_a_relation_and_a_test_that_could_find_nothing_says_so():
    assert verdict([1, 3, 6, 8, 7, 5, 4, 2.5]).startswith("performance is highest between the ends (p")
    assert verdict([8, 6, 3, 1, 2, 4, 5, 7]).startswith("performance is lowest between the ends (p")
    assert verdict([1, 2, 3, 4, 5, 6, 7, 8]) == "they rise together."
    assert "smallest possible p 0.083" in verdict([1, 2, 3, 4])
    assert "shows from 6 settings on" in verdict([1, 3, 4, 5, 2])


def test_of_unrelated_numbers_one_in_twenty_has_a_relation():
    generator = np.random.default_rng(0)
    found = ["no relation" not in verdict(generator.normal(size=7)) for _ in range(300)]
    assert 0.01 < np.mean(found) < 0.09


def test_setups_are_not_mixed_either():
    correlation, _ = associated([*sweep("demo/sentiment", 0.2, 1), *sweep("demo/sentiment", 0.9, 1, epochs=9)])
    assert list(correlation.by_task) == [
        "demo/tiny-bert on demo/sentiment",
        "demo/tiny-bert on demo/sentiment, setup 2",
    ]


def test_collapsed_and_undefined_runs_are_no_points():
    rows = [
        *sweep("demo/sentiment", 0.4, 1),
        row("c", config("isobn", 0, task="demo/sentiment"), outcome=result(0.5, 0.1, collapsed="predicts one class")),
        row("u", config("isobn", 1, task="demo/sentiment"), outcome=result(0.5, None)),
    ]
    assert associated(rows)[0].points == 8
