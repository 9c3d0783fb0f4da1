"""Isotropy against performance: settings are the points, tasks are not mixed, seeds are not independent evidence."""

from __future__ import annotations

import pytest

from isoviz.comparisons import associate
from tests.dashboard.made_up import config, result, row


def sweep(task, level, slope, settings=8, seeds=3, prefix=""):
    """I-STAR at several λ; both numbers rise with the task's level."""
    return [
        row(
            f"{prefix}{task}{lam}-{seed}",
            config("istar", seed, {"lam": lam}, task=task),
            outcome=result(level + slope * (lam + (lam == 3) * 1.5) / 100 + seed / 1000, level / 2 + lam / 100),
        )
        for lam in range(1, settings + 1)
        for seed in range(seeds)
    ]


def test_points_are_settings_not_seeds():
    association = associate(sweep("demo/sentiment", 0.4, -1), "isoscore_star")
    assert (association.settings, association.tasks) == (8, 1)
    assert -1 < association.estimate < -0.9 and association.p < 0.01
    assert association.sentence.startswith(
        "Over 8 settings of one task, Spearman's ρ of IsoScore* with performance is −0.9"
    )
    assert association.sentence.endswith("one falls as the other rises.")
    two = associate(sweep("demo/sentiment", 0.4, -1, settings=2, seeds=10), "isoscore_star")
    assert (two.estimate, two.p) == (None, None) and "not enough settings to tell" in two.sentence


def test_tasks_are_not_mixed_and_simpson_is_named():
    rows = [*sweep("demo/sentiment", 0.2, -1), *sweep("demo/entailment", 0.5, -1), *sweep("demo/paraphrase", 0.8, -1)]
    association = associate(rows, "isoscore_star", metric="accuracy")
    assert association.estimate < -0.9 and association.mixed > 0.5
    assert len(association.by_task) == 3
    assert "3 tasks, within each of them" in association.sentence and "Simpson's paradox" in association.sentence


def test_setups_are_not_mixed_either():
    longer = [
        row(f"l{one.id}", one.config.model_copy(update={"epochs": 9}), outcome=one.result)
        for one in sweep("demo/sentiment", 0.9, 1)
    ]
    association = associate([*sweep("demo/sentiment", 0.2, 1), *longer], "isoscore_star")
    assert list(association.by_task) == [
        "demo/tiny-bert on demo/sentiment",
        "demo/tiny-bert on demo/sentiment, setup 2",
    ]


def test_collapsed_and_undefined_runs_are_left_out_by_name():
    rows = [
        *sweep("demo/sentiment", 0.4, 1),
        row("c", config("isobn", 0, task="demo/sentiment"), outcome=result(0.5, 0.1, collapsed="predicts one class")),
        row("u", config("isobn", 1, task="demo/sentiment"), outcome=result(0.5, None)),
    ]
    association = associate(rows, "isoscore_star", kind="kendall")
    assert {run.run: run.reason for run in association.excluded} == {
        "c": "collapsed: predicts one class",
        "u": "isoscore_star is undefined",
    }
    assert "Kendall's τ" in association.sentence
    assert association.estimate == pytest.approx(1 - 2 / 28)  # λ = 3 passes λ = 4: one of 28 pairs
