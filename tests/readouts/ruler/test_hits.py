"""Best hits of a search: against plain numpy and scikit-learn, coverage of the intervals, and thresholds that are not recommended."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.isotonic import IsotonicRegression

from isoviz.readouts import ruler as rulers
from isoviz.readouts.ruler import Ruler, hits
from tests import nightly

Matrix = NDArray[np.float64]


def search(queries: int, documents: int, noise: float, precision: float) -> tuple[Ruler, Matrix, NDArray[np.int64]]:
    """The ruler of a search; each query's cosines with all documents; the place of its relevant document."""
    generator = np.random.default_rng(5)
    texts = generator.normal(size=(documents, 24))
    right = generator.integers(documents, size=queries)
    asked = texts[right] + noise * generator.normal(size=(queries, 24))
    pairs = np.stack([documents + np.arange(queries), right], axis=1)
    ruler = rulers.ruler(
        np.concatenate([texts, asked]), pairs=pairs, documents=np.arange(documents), precision=precision
    )
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (asked, texts)]
    return ruler, unit[0] @ unit[1].T, right


def test_a_search_knows_its_base_rate_and_whether_best_hits_are_right() -> None:
    ruler, values, right = search(300, 200, 1.6, precision=0.8)
    found, related = ruler.hits, ruler.related
    assert found is not None and related is not None and (found.queries, found.documents) == (300, 200)
    assert related.share == pytest.approx(300 / (300 * 200))
    cosine, hit = values.max(axis=1), values.argmax(axis=1) == right
    assert found.right[0] == pytest.approx(hit.mean()) and found.right[1] < hit.mean() < found.right[2]
    curve = IsotonicRegression(out_of_bounds="clip").fit(cosine, hit).predict(found.cosine)
    np.testing.assert_allclose(found.probability, curve, atol=1e-9)
    assert np.all(np.diff(found.low) >= 0) and np.all(np.diff(found.high) >= 0)
    threshold = found.threshold
    assert threshold is not None and threshold.lost is not None and threshold.avoided is not None
    above = cosine >= threshold.cosine - 1e-12
    assert threshold.precision == pytest.approx(hit[above].mean()) and threshold.recall == pytest.approx(
        above[hit].mean()
    )
    assert threshold.lost[0] == pytest.approx(1 - above[hit].mean())
    assert threshold.avoided[0] == pytest.approx(1 - above[~hit].mean())
    assert f"Below {threshold.cosine:.3f} answer *not found*: you lose" in found.advice
    reading = ruler.read(float(np.median(cosine)))
    assert reading.best_hit == found.read(reading.cosine) and "As a query's best hit it is relevant" in reading.sentence
    assert Ruler.model_validate_json(ruler.model_dump_json()) == ruler


def test_a_threshold_whose_precision_is_too_uncertain_is_not_recommended() -> None:
    ruler, *_ = search(30, 40, 1.6, precision=0.8)
    other, *_ = search(30, 40, 1.2, precision=0.8)
    for found in (ruler.hits, other.related):
        assert found is not None and found.threshold is not None
        assert found.threshold.high - found.threshold.low > 0.2 and found.threshold.recommended is False
    assert ruler.hits is not None and "These 30 queries cannot support a threshold for 80 %" in ruler.hits.advice
    assert other.related is not None and "These 30 pairs cannot support a threshold for 80 %" in other.related.advice


def test_best_hits_count_ties_by_chance_and_not_the_query_itself() -> None:
    points = np.array([[1.0, 0], [1, 0], [0, 1], [1, 1]])
    pairs = np.array([[3, 0], [2, 3]])
    cosine, right = hits.best(points, pairs, np.array([3, 2]), np.arange(4))
    assert cosine == pytest.approx([math.sqrt(0.5)] * 2) and right == pytest.approx([1 / 3, 1])


@pytest.mark.parametrize(("spread", "together"), nightly.cases([(0.1, 1), (0.13, 1), (0.1, 2)], always=[(0.1, 2)]))
def test_intervals_hold_the_truth(spread: float, together: int) -> None:
    """Right hits have cosines N(0.6, 0.1), wrong ones N(0.4, spread); or each query comes twice. 95 % minus four standard errors."""
    draws, n, generator = 120, 300, np.random.default_rng(0)
    held = np.zeros((draws, 4), bool)
    for draw in range(draws):
        right = (generator.random(n // together) < 0.75).astype(float)
        cosine = np.where(right > 0, generator.normal(0.6, 0.1, len(right)), generator.normal(0.4, spread, len(right)))
        cosine, right, groups = (np.repeat(x, together) for x in (cosine, right, np.arange(len(right))))
        at = np.linspace(cosine.min(), cosine.max(), 101)
        curve, low, high = hits.calibrated(cosine, right, groups, at)
        densities = 0.75 * norm.pdf(0.55, 0.6, 0.1), 0.25 * norm.pdf(0.55, 0.4, spread)
        held[draw, 0] = np.interp(0.55, at, low) <= densities[0] / sum(densities) <= np.interp(0.55, at, high)
        found = hits.threshold(cosine, right, groups, np.interp(cosine, at, curve), 0.9)
        assert found is not None and found.lost is not None and found.avoided is not None
        kept, wrong = norm.sf(found.cosine, 0.6, 0.1), norm.sf(found.cosine, 0.4, spread)
        held[draw, 1] = found.low <= 0.75 * kept / (0.75 * kept + 0.25 * wrong) <= found.high
        held[draw, 2] = found.lost[1] <= 1 - kept <= found.lost[2]
        held[draw, 3] = found.avoided[1] <= 1 - wrong <= found.avoided[2]
    assert held.mean(axis=0).min() >= 0.95 - 4 * math.sqrt(0.05 * 0.95 / draws), held.mean(axis=0)
