"""Comparisons of made images: what is shown for which rows, verdicts in both directions, pairs and bare vectors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from isoviz import metrics, readouts
from isoviz.readouts import CATALOGUE, Annotations, Labels, RatedPairs, Relevance, cosines
from isoviz.readouts.image import Image
from isoviz.statistics.paired_bootstrap import Statistic
from tests.metrics.reference_clouds import equal_but_for_rounding, equally_far

RNG = np.random.default_rng(4)
POINTS = RNG.normal(size=(80, 5)) + 2.0
PAIRS = RatedPairs(np.arange(0, 80, 2), np.arange(1, 80, 2), RNG.integers(0, 6, 40).astype(float))


def test_pair_scores_match_scipy() -> None:
    left, right = POINTS[PAIRS.left], POINTS[PAIRS.right]
    values = (left * right).sum(axis=1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)
    scores = readouts.measure(Image(POINTS), Annotations(pairs=PAIRS))
    assert scores["spearman_cosine"].value == pytest.approx(stats.spearmanr(PAIRS.score, values)[0], abs=1e-6)
    assert scores["pearson_cosine"].value == pytest.approx(stats.pearsonr(PAIRS.score, values)[0], abs=1e-6)
    related = PAIRS.score >= 0.8 * PAIRS.score.max()
    assert scores["alignment"].n == related.sum() > 1
    assert scores["alignment"].value == pytest.approx(metrics.alignment(left[related], right[related]), abs=1e-6)


def test_applicable_readouts_follow_from_the_annotations() -> None:
    assert {readout.needs for readout in readouts.applicable(Annotations())} == {"nothing"}
    labelled = Annotations(pairs=PAIRS, labels=Labels(np.arange(80), RNG.integers(0, 2, 80)))
    slow = [readout.slug for readout in readouts.applicable(labelled, slow=True)]
    assert slow == ["probe"]
    assert set(readouts.measure(Image(POINTS), labelled, ["knn", "spearman_cosine"])) >= {"knn", "spearman_cosine"}
    assert all(one.slug == slug and one.help.endswith(".") for slug, one in CATALOGUE.items())


def test_intervals_count_how_rows_affect_each_other() -> None:
    points = RNG.normal(size=(30, 4))

    def measured(rows: np.ndarray) -> dict[str, Statistic]:
        return readouts.measure(Image(points[rows]), Annotations(), ["random_pairs", "nearest"])

    every = np.arange(30)
    without = [measured(np.delete(every, row)) for row in every]
    counts = np.random.default_rng(0).multinomial(30, np.full(30, 1 / 30), size=20)
    for slug, statistic in measured(every).items():
        left_out = np.array([one[slug].value for one in without])
        influences = 29 * (left_out.mean() - left_out)
        assert statistic.resampled(counts) == pytest.approx(statistic.value + counts @ influences / 30, abs=2e-5), slug


def test_rows_without_a_label_are_left_out() -> None:
    codes = RNG.integers(0, 2, 80)
    some = Labels(np.arange(50), codes[:50])
    of_some = readouts.measure(Image(POINTS), Annotations(labels=some), ["knn"])["knn"]
    assert of_some.n == 50
    assert (
        of_some.value
        == readouts.measure(Image(POINTS[:50]), Annotations(labels=Labels(np.arange(50), codes[:50])), ["knn"])[
            "knn"
        ].value
    )


def test_verdicts_in_every_direction() -> None:
    codes = np.repeat([0, 1], 40)
    mixed, apart = RNG.normal(size=(80, 5)), RNG.normal(size=(80, 5)) + 4 * np.eye(5)[codes]
    known = Annotations(labels=Labels(np.arange(80), codes))

    def verdict(before: np.ndarray, after: np.ndarray, slug: str = "knn") -> str:
        return readouts.compare(before, after, known, [slug])[0].verdict

    assert verdict(mixed, apart) == "Significantly higher on these 80 rows; another fit of the transform may differ."
    assert verdict(apart, mixed) == "Significantly lower on these 80 rows; another fit of the transform may differ."
    assert verdict(mixed, mixed + 1e-9) == "The same on these 80 rows."
    slightly = mixed + 0.3 * RNG.normal(size=mixed.shape)
    assert verdict(mixed, slightly) == "No difference detectable with these 80 rows."
    flat = RatedPairs(PAIRS.left, PAIRS.right, np.ones(40))
    comparison = readouts.compare(mixed, apart, Annotations(pairs=flat), ["pearson_cosine"])
    assert {one.verdict for one in comparison} == {"Undefined on these 40 pairs."}


def test_the_noise_floor_leaves_out_pairs_that_annotations_connect() -> None:
    generator = np.random.default_rng(0)
    points = generator.normal(size=(80, 5)) + 0.5
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    every, rows = unit @ unit.T, np.arange(80)
    codes = generator.integers(0, 3, 80)
    cases = {
        "labels": (Annotations(labels=Labels(rows, codes)), codes[:, None] == codes),
        "pairs": (Annotations(pairs=PAIRS), rows[:, None] // 2 == rows // 2),
        "queries": (
            Annotations(queries=Relevance(rows[:9], rows[9:], np.array([2]), np.array([5]), np.ones(1))),
            (rows[:, None] == 2) & (rows == 14),
        ),
        "nothing": (Annotations(), np.zeros((80, 80), bool)),
    }
    for known, connected in cases.values():
        floor = readouts.measure(Image(points), known, ["noise_floor"])["noise_floor"]
        unrelated = ~(connected | connected.T) & ~np.tri(80, dtype=bool)
        assert floor.value == pytest.approx(np.quantile(every[unrelated], 0.99), abs=1e-6)

    def without(row: int) -> float:
        others = np.delete(every, row, 0)[:, rows != row]
        return float(np.quantile(others[~np.tri(79, dtype=bool)], 0.99))

    left_out = np.array([without(row) for row in rows])
    influences = 79 * (left_out.mean() - left_out)
    counts = generator.multinomial(80, np.full(80, 1 / 80), size=50)
    assert np.corrcoef(floor.resampled(counts), counts @ influences)[0, 1] > 0.99
    assert np.std(floor.resampled(counts)) == pytest.approx(np.std(counts @ influences / 80), rel=0.05)


def test_a_zero_vector_has_no_direction() -> None:
    points = POINTS.copy()
    points[3] = 0.0
    image = Image(points)
    assert np.count_nonzero(~image.directed) == 1 and not image.unit[3].any()
    assert np.isfinite([one.value for one in readouts.measure(image, Annotations(pairs=PAIRS)).values()]).all()


def test_many_rows_are_compared_by_sample() -> None:
    image = Image(RNG.normal(size=(2_500, 3)))
    assert len(image.sample) == 1_500 == len(np.unique(image.sample))
    assert readouts.measure(image, Annotations(), ["nearest"])["nearest"].n == 1_500


def test_neighbours_of_tied_rows_count_as_the_mean_of_their_orders_in_any_order_of_the_rows() -> None:
    generator = np.random.default_rng(8)
    points = generator.normal(size=(60, 6))
    signs = np.where(points > 0, 1.0, -1.0)  # at most 7 Hamming distances
    before, after = (unit @ unit.T for unit in (Image(points).unit.astype(float), signs / np.sqrt(6)))
    expected = []
    for row in range(60):
        others = np.delete(np.arange(60), row)
        nearest = set(others[np.argsort(-before[row, others])[:10]].tolist())
        orders = []
        for _ in range(400):
            shuffled = generator.permutation(others)
            orders.append(
                len(nearest & set(shuffled[np.argsort(-after[row, shuffled].round(6), kind="stable")[:10]].tolist()))
            )
        expected.append(np.mean(orders) / 10)
    recall = cosines.overlap(Image(points), Image(signs))
    assert recall.value == pytest.approx(np.mean(expected), abs=0.004)
    order = generator.permutation(60)
    assert cosines.overlap(Image(points[order]), Image(signs[order])).value == pytest.approx(recall.value, abs=1e-9)
    twins = np.repeat(points[:12], 5, axis=0)  # a cloud with ties keeps all its own neighbours
    assert cosines.overlap(Image(twins), Image(twins)).value == pytest.approx(1.0)
    collapsed = cosines.overlap(Image(points), Image(np.ones((60, 6)))).value
    assert collapsed == pytest.approx(10 / 59)


@pytest.mark.parametrize("codes", [False, True])
def test_intervals_of_neighbours_count_which_rows_take_the_place_of_others(codes: bool) -> None:
    generator = np.random.default_rng(3)
    before, after = generator.normal(size=(2, 50, 5))
    after += before
    if codes:  # with many equal cosines
        before, after = np.round(before), np.sign(after)

    def recall(rows: np.ndarray) -> Statistic:
        return cosines.overlap(Image(before[rows]), Image(after[rows]))

    every = np.arange(50)
    without = np.array([recall(np.delete(every, row)).value for row in every])
    influences = 49 * (without.mean() - without)
    counts = generator.multinomial(50, np.full(50, 1 / 50), size=20)
    whole = recall(every)
    assert whole.resampled(counts) == pytest.approx(whole.value + counts @ influences / 50, abs=1e-5)


@pytest.mark.parametrize(
    "points", [equally_far(30, 64) - equally_far(30, 64).mean(axis=0), equal_but_for_rounding(30, 64)]
)
def test_similarities_that_differ_by_rounding_correlate_with_nothing(points: NDArray[np.floating]) -> None:
    pairs = RatedPairs(*np.triu_indices(30, 1), RNG.normal(size=435))
    measured = readouts.measure(Image(points), Annotations(pairs=pairs), ["spearman_cosine", "pearson_cosine"])
    assert all(one.value is None for one in measured.values())
