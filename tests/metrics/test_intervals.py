"""Jackknife intervals against refits without each group, their coverage, and one point per group."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference_clouds import spread_cloud
from scipy import stats

from isoviz import metrics
from isoviz.metrics import UndefinedWarning, isoscore_interval, one_per_group, participation_ratio_interval
from isoviz.metrics.intervals import student_quantile

pytestmark = pytest.mark.filterwarnings("ignore::isoviz.metrics.SmallSampleWarning")
SCORE = metrics.isoscore_unbiased
CLOUDS = {
    "tall": spread_cloud(60, 7),
    "direct form": spread_cloud(30, 40, 1),
    "Gram form": spread_cloud(14, 40, 2),
    "heavy tails far away": np.random.default_rng(3).standard_t(2, size=(50, 12)) + 1e4,
    "many dimensions": np.random.default_rng(4).normal(size=(160, 130)) * np.linspace(0.1, 2, 130),  # several blocks
}
GROUPINGS = {
    "single points": lambda n: None,
    "equal": lambda n: np.arange(n) % 5,
    "uneven, shuffled": lambda n: np.random.default_rng(0).permutation(
        np.repeat(["a", "b", "c", "d"], [1, 2, n // 2, n - 3 - n // 2])
    ),
}


def by_refits(points, labels, level=0.95):
    """From the score without each group in turn, by leaving it out."""
    labels = np.arange(len(points)) if labels is None else np.asarray(labels)
    values = np.array([SCORE(points[labels != label]) for label in np.unique(labels)])
    count = len(values)
    error = np.sqrt((count - 1) / count * ((values - values.mean()) ** 2).sum())
    reach = stats.t.ppf((1 + level) / 2, count - 1) * error
    return SCORE(points) - reach, SCORE(points) + reach, error


@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.parametrize("grouping", GROUPINGS)
def test_it_matches_refits_without_each_group(cloud, grouping):
    points = CLOUDS[cloud]
    n, d = points.shape
    labels = GROUPINGS[grouping](n)
    low, high, error = by_refits(points, labels, level=0.9)
    interval = isoscore_interval(points, labels, level=0.9)
    assert (interval.n, interval.d) == (n, d)
    assert interval.problem is None
    assert interval.estimate == pytest.approx(SCORE(points), rel=1e-12)
    assert [interval.low, interval.high, interval.standard_error] == pytest.approx([low, high, error], rel=1e-10)
    ratio = participation_ratio_interval(points, labels, level=0.9)
    assert [ratio.low, ratio.high] == pytest.approx([1 + (d - 1) * low, 1 + (d - 1) * high], rel=1e-10)
    assert ratio.standard_error == pytest.approx((d - 1) * error, rel=1e-10)


@pytest.mark.parametrize("labels", [None, np.array([0, 0, 1, 1] + [2, 3, 4, 5] * 9)])
@pytest.mark.parametrize("size", [1e2, 1e3])
def test_one_group_that_holds_nearly_everything(labels, size):
    """Downdating would cancel all digits: without the far point F is 1e-24 of what it was."""
    points = np.random.default_rng(0).normal(size=(40, 6))
    points[0] *= size
    expected = by_refits(points, labels)
    interval = isoscore_interval(points, labels)
    assert interval.low == pytest.approx(expected[0], abs=1e-10)  # a small difference of numbers above 1
    assert [interval.high, interval.standard_error] == pytest.approx(expected[1:], rel=1e-10)
    assert isoscore_interval(points * 1e-90, labels).high == pytest.approx(interval.high, rel=1e-10)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 62, 63, 499, 500, 3000])
def test_the_quantile_is_students(freedom):
    for probability in (0.75, 0.975, 0.9995):
        assert student_quantile(probability, freedom) == pytest.approx(stats.t.ppf(probability, freedom), rel=1e-8)


def draw(rng, n, spectrum, tails):
    points = rng.normal(size=(n, len(spectrum))) * np.sqrt(spectrum)
    return points / np.sqrt(rng.chisquare(5, size=(n, 1)) / 5) if tails else points


@pytest.mark.parametrize("tails", [False, True], ids=["Gaussian", "t5"])
def test_its_coverage_matches_its_level(tails):
    """Nominal 0.95; the docstring's 2000 draws gave 0.946 and 0.937. Four standard errors of 400 draws are 0.044."""
    spectrum = np.array([10.0, 6, 4, 4] + [1.0] * 28)
    truth = (spectrum.sum() ** 2 / (spectrum**2).sum() - 1) / 31
    rng = np.random.default_rng(1)
    drawn = [isoscore_interval(draw(rng, 64, spectrum, tails)) for _ in range(400)]
    covered = np.mean([one.low <= truth <= one.high for one in drawn])
    assert 0.90 < covered < 0.985
    # The error it states is the scatter that is there.
    stated = np.sqrt(np.mean([one.standard_error**2 for one in drawn]))
    assert stated == pytest.approx(np.std([one.estimate for one in drawn]), rel=0.2)


def sentences(rng, count, tokens, d=64, share=0.5):
    """Isotropic tokens (truth 1), half of whose variance is their sentence's."""
    common = np.repeat(rng.normal(size=(count, d)), tokens, axis=0)
    own = rng.normal(size=(count * tokens, d))
    return np.sqrt(share) * common + np.sqrt(1 - share) * own, np.repeat(np.arange(count), tokens)


def test_groups_allow_for_correlated_tokens():
    """What such sentences give on average is held by intervals over sentences, rarely by those over tokens."""
    rng = np.random.default_rng(0)
    spread = 1 / np.arange(1, 13)
    over_sentences, over_tokens = [], []
    for _ in range(300):
        points, labels = sentences(rng, 16, 8, 12)
        over_sentences.append(isoscore_interval(points * spread, labels))
        over_tokens.append(isoscore_interval(points * spread))
    target = np.mean([over_token.estimate for over_token in over_tokens])
    assert [over_token.estimate for over_token in over_tokens] == [
        over_sentence.estimate for over_sentence in over_sentences
    ]
    coverage = [np.mean([one.low <= target <= one.high for one in kind]) for kind in (over_sentences, over_tokens)]
    assert coverage[0] > 0.88
    assert coverage[1] < coverage[0] - 0.08


def test_one_per_group_draws_each_member_equally_often():
    labels = np.array(["b", "a", "b", "c", "b", "a"])
    points = np.arange(6.0)[:, None]
    counts = np.zeros(6)
    for seed in range(600):
        chosen = one_per_group(points, labels, seed)[:, 0].astype(int)
        assert sorted(labels[chosen]) == ["a", "b", "c"]
        assert (np.diff(chosen) > 0).all()
        counts[chosen] += 1
    assert counts[3] == 600
    assert counts[[0, 2, 4]] == pytest.approx([200] * 3, abs=50)
    assert counts[[1, 5]] == pytest.approx([300] * 2, abs=55)


def test_tensors_give_the_same_interval():
    points = spread_cloud(30, 5)
    labels = np.arange(30) // 3
    interval = isoscore_interval(torch.from_numpy(points).requires_grad_(), torch.from_numpy(labels))
    assert interval == isoscore_interval(points, labels)
    assert isinstance(interval.low, float)


@pytest.mark.parametrize(
    "n, labels, reason",
    [
        (1, None, "at least 2 points, got 1"),
        (3, None, "at least 4 points"),
        (4, None, "3 points remain; it needs at least 4"),
        (9, [0] * 4 + [1] * 5, "at least 3 groups to leave out, got 2"),
        (9, [0] * 8 + [1], "got 2"),
        (9, [0, 1, 2] + [3] * 6, "without the largest group 3 points remain; it needs at least 4"),
    ],
)
def test_input_without_an_interval(n, labels, reason):
    points = spread_cloud(n, 3)
    with pytest.warns(UndefinedWarning, match=reason) as caught:
        interval = isoscore_interval(points, labels)
    assert reason in interval.problem
    assert np.isnan([interval.low, interval.high, interval.standard_error]).all()
    assert caught[0].filename == __file__
    if n >= 4:  # a value without an interval keeps its value
        assert interval.estimate == pytest.approx(SCORE(points), rel=1e-12)
