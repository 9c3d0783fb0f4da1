"""Label read-outs against scikit-learn and plain loops; what cross-fitting keeps apart."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score

from isoviz import posthoc
from isoviz.readouts import labels
from isoviz.readouts.image import Image
from tests.metrics.reference_clouds import equal_but_for_rounding

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, 90)
POINTS = RNG.normal(size=(90, 6)) + 1.2 * np.eye(6)[LABELS]


def test_nearest_neighbours_vote_as_in_plain_loops() -> None:
    unit = POINTS / np.linalg.norm(POINTS, axis=1, keepdims=True)
    right = []
    for row in range(90):
        similar = unit @ unit[row]
        similar[row] = -np.inf
        near = np.argsort(-similar)[:10]
        score = {one: (np.sum(LABELS[near] == one), similar[near][LABELS[near] == one].sum()) for one in range(3)}
        right.append(max(score, key=score.__getitem__) == LABELS[row])
    assert labels.neighbours(Image(POINTS), LABELS).value == pytest.approx(np.mean(right))


@pytest.mark.parametrize("codes", [[0] * 6 + [1] * 5, [1] * 6 + [0] * 5])
def test_labels_that_rounding_would_choose_between_count_by_chance(codes: list[int]) -> None:
    """The five others with its label and the five with the other one are equally near each of the six rows."""
    found = labels.neighbours(Image(1 + 1e-9 * POINTS[:11]), np.array(codes))
    assert found.value == pytest.approx(3 / 11)


def test_rounding_is_not_fitted() -> None:
    points, codes = equal_but_for_rounding(90, 6), np.array([0, 1, 1] * 30)
    assert (labels.linear_head(points, codes, points, "classification") == 1).all()
    assert labels.linear_head(points, 1.0 * codes, points, "regression") == pytest.approx(2 / 3)
    assert labels.probe(Image(points), codes).value == pytest.approx(2 / 3)


@pytest.mark.parametrize(("rows", "classes"), [(10, 2), (20, 5), (33, 6), (60, 12)])
def test_rows_of_small_classes_find_their_own(rows: int, classes: int) -> None:
    codes = np.arange(rows) % classes
    apart = np.eye(classes)[codes] + 0.01 * np.random.default_rng(rows).normal(size=(rows, classes))
    assert labels.neighbours(Image(apart), codes).value == 1.0
    crossed = labels.finished(labels.crossed_stages(apart, codes, lambda train: lambda points: points))["knn"]
    assert crossed[0].value == crossed[1].value == 1.0


def test_a_rare_label_costs_no_folds_and_may_be_missing_from_the_sample() -> None:
    codes = np.array([0] * 20 + [1] * 20 + [2] * 2)
    assert len(labels.folds(codes)) == 5
    image = Image(np.random.default_rng(0).normal(size=(3000, 2)))
    one_of_many = np.zeros(3000, dtype=np.int64)
    one_of_many[np.setdiff1d(np.arange(3000), image.sample)[0]] = 1
    assert labels.neighbours(image, one_of_many).value is None


def test_the_probe_is_cross_validated() -> None:
    random = np.random.default_rng(1)
    noise, coin = random.normal(size=(60, 59)), random.integers(0, 2, 60)
    assert LogisticRegression().fit(noise, coin).score(noise, coin) == 1.0  # as many numbers as rows: fits anything
    assert labels.probe(Image(noise), coin).value < 0.75
    assert labels.probe(Image(POINTS), LABELS).value > 0.6


def test_the_probe_chooses_its_penalty() -> None:
    """Half as many dimensions as rows, labels in few of them: an almost unpenalised head learns the noise of the others."""
    random = np.random.default_rng(0)
    latent = random.normal(size=(400, 200))
    sides = (latent[:, :6].sum(axis=1) + 2.5 * random.normal(size=400) > 0).astype(int)
    points = latent * np.geomspace(1, 0.15, 200)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    default = cross_val_score(LogisticRegression(), points, sides, cv=StratifiedKFold(5, shuffle=True, random_state=0))
    accuracy = labels.probe(Image(points), sides).value
    assert accuracy > default.mean() - 0.02
    many = np.repeat([0, 1, 2, 3], [30, 20, 2, 1])
    assert labels.probe(Image(latent[:53, :8]), many).value is not None  # labels too rare for inner folds


def test_cross_fitting_shows_no_row_to_what_reads_it() -> None:
    seen: list[int] = []

    def fit(points: np.ndarray):  # type: ignore[no-untyped-def]
        seen.append(len(points))
        return posthoc.zca(eps=0.1).fit(points).transform

    predicted = labels.finished(labels.crossed_stages(POINTS, LABELS, fit))
    assert len(seen) == 5 and max(seen) <= 73
    for before, after in predicted.values():
        assert before.n == after.n == 90
    before, after = labels.finished(
        labels.crossed_stages(POINTS, LABELS, lambda points: lambda others: np.asarray(others))
    )["probe"]
    assert before.value == after.value
