"""docs/what-holds.md: its statistics against plain loops, and its page against the store that ships with it."""

from __future__ import annotations

import dataclasses
import importlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from factory import record_what_holds as record

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield importlib.import_module("what_holds")


def test_correlations_are_those_of_plain_loops(script: Any) -> None:
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(4, 6, seeds)).round(1) for seeds in (3, 5)]
    first, second = (part.reshape(4, -1) for part in parts)
    rho = script.agreement(parts)
    for one, two in itertools.combinations(range(4), 2):
        expected = [stats.spearmanr(part[one], part[two]).statistic for part in (first, second)]
        assert rho[one, two] == pytest.approx(np.mean(expected))
    for task, part in enumerate(parts):
        for measure in range(3):
            means = part.mean(axis=2)
            across = stats.spearmanr(means[measure], means[3]).statistic
            assert script.across_arms(parts)[task, 0, measure] == pytest.approx(across)
            by_arm = [stats.spearmanr(part[measure, arm], part[3, arm]).statistic for arm in range(6)]
            assert script.across_seeds(parts)[task, 0, measure] == pytest.approx(np.mean(by_arm))


def test_a_permutation_is_that_of_the_scores(script: Any) -> None:
    rng = np.random.default_rng(1)
    parts = [rng.normal(size=(3, 5, 4)) for _ in range(2)]
    order = np.array([[2, 0, 1, 4, 3]])
    moved = [np.concatenate([part[:-1], part[-1:, order[0]]]) for part in parts]
    assert script.across_arms(parts, order) == pytest.approx(script.across_arms(moved))
    order = np.array([[2, 0, 1, 3]])
    moved = [np.concatenate([part[:-1], part[-1:, :, order[0]]]) for part in parts]
    assert script.across_seeds(parts, [order, order]) == pytest.approx(script.across_seeds(moved))


def test_arms_that_repeat_in_every_task_are_no_further_evidence(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a relation, about 5 % of studies find one at 5 %, although their three tasks say the same."""
    monkeypatch.setattr(script, "DRAWS", 199)
    rng = np.random.default_rng(2)
    found = []
    for _ in range(300):
        arms = rng.normal(size=(2, 10, 1))
        parts = [arms + 0.01 * rng.normal(size=(2, 10, 3)) for _ in range(3)]
        null = script.across_arms(parts, script.shuffled(10, rng)).mean(axis=0)
        found.append(script.p_values(script.across_arms(parts)[:, 0].mean(axis=0), null)[0])
    assert 0.02 < np.mean(np.array(found) <= 0.05) < 0.09


def test_the_stated_power(script: Any) -> None:
    rng = np.random.default_rng(3)
    rho = script.detectable(20, 1, 1)
    pearson = 2 * np.sin(np.pi / 6 * rho)  # of normal values with this rank correlation
    x, noise = rng.normal(size=(2, 2000, 20))
    y = pearson * x + np.sqrt(1 - pearson**2) * noise
    p = [stats.spearmanr(one, two).pvalue for one, two in zip(x, y, strict=True)]
    assert np.mean(np.array(p) < 0.05) == pytest.approx(0.8, abs=0.04)
    assert script.detectable(20, 3, 1) < rho < script.detectable(20, 1, 40)


def test_reliability_is_the_share_of_the_arms(script: Any) -> None:
    rng = np.random.default_rng(4)
    # seeds that are easier for every arm
    scores = rng.normal(size=(4000, 1)) + rng.normal(size=(4000, 4)) + [0, 5, 10, 15]
    assert script.reliability(scores) == pytest.approx(1 / (1 + 1 / 4), abs=0.03)


def _block(script: Any, task: str, seeds: int, shift: float) -> Any:
    """Measures 0 and 1 rise together and 2 against them; the score of I-STAR at λ = 1 is `shift` above the others'."""
    rng = np.random.default_rng(seeds)
    base = np.arange(len(record.ARMS))[:, None] + 0.1 * rng.normal(size=(len(record.ARMS), seeds))
    scores = np.full((2, len(record.ARMS), seeds), 0.8) + 0.001 * rng.normal(size=(2, len(record.ARMS), seeds))
    scores[:, record.ARMS.index(("istar", {"lam": 1.0}))] += shift
    return script.Block(
        task, tuple(range(seeds)), np.stack([base, base**2, -base]), scores.copy(), scores, frozenset(), 0.6, 500, 128
    )


SLUGS = ["isoscore", "isoscore_star", "mean_cosine"]


@pytest.mark.parametrize("shift", [-0.1, 0.0, 0.1])
def test_a_change_of_the_score_is_found_with_its_sign(script: Any, shift: float) -> None:
    parts = [_block(script, "demo/sentiment", 5, shift), _block(script, "demo/similarity", 4, shift)]
    words, (table,) = script.moving(SLUGS, parts)
    rows = [row for row in table.rows if row[0] == script.arm_title(record.ARMS.index(("istar", {"lam": 1.0})))]
    assert [row[1] for row in rows] == ["Sentiment", "Similarity", "mean of tasks"]
    assert all(float(row[4].split()[0].replace("−", "-")) == pytest.approx(100 * shift, abs=0.3) for row in rows)
    sentence = next(one for one in words if "λ = 1 " in one)
    numbers = {
        0.1: "6 of 6 scores higher than the baseline's and 0",
        -0.1: "0 of 6 scores higher than the baseline's and 6",
    }
    assert (
        numbers.get(shift, "0 of 6 scores higher than the baseline's and 0") in sentence
        and "more isotropic" in sentence
    )
    unlearned = dataclasses.replace(parts[0], simple=0.95)
    assert not unlearned.learned and script.moving(SLUGS, [unlearned])[1] == []


def test_the_shipped_store_has_the_runs_that_the_page_counts(script: Any) -> None:
    page = (ROOT / "docs" / script.PAGE).read_text(encoding="utf-8")
    with script.opened(record.PACKED) as store:
        for model, group in record.GROUPS.items():
            rows = store.list(group=group, status="finished")
            if not rows:
                assert f"**{model}**: no runs yet" in page
                continue
            _, found = script.blocks(store, group)
            assert sum(len(record.ARMS) * len(block.seeds) for block in found) == len(rows)
            assert f"**{model}**: {len(rows)} runs" in page and script.runs_table(found).markdown() in page
            assert {row.config.model for row in rows} == {model} and {row.config.data for row in rows} == {None}
        assert sum(store.counts().values()) == sum(len(store.list(group=group)) for group in record.GROUPS.values())
