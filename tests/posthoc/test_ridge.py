"""ε as a multiple of the mean variance, and what a fit says of ε, of few points and of dropped directions."""

from __future__ import annotations

import numpy as np
import pytest

from isoviz import posthoc
from isoviz.errors import InputError

RNG = np.random.default_rng(2)
CLOUD = RNG.normal(size=(200, 10)) @ RNG.normal(size=(10, 10)) + 3
SINGLE = CLOUD * np.geomspace(1, 0.05, 10)


@pytest.mark.parametrize("slug", ["zca", "pca_whitening"])
def test_a_ridge_is_a_multiple_of_the_mean_variance(slug: str) -> None:
    mean_variance = np.trace(np.cov(CLOUD.T)) / 10
    relative = posthoc.get(slug)(ridge=0.3).fit_transform(CLOUD)
    np.testing.assert_allclose(relative, posthoc.get(slug)(eps=0.3 * mean_variance).fit_transform(CLOUD), rtol=1e-9)
    np.testing.assert_allclose(relative, posthoc.get(slug)(ridge=0.3).fit_transform(1e-4 * CLOUD), rtol=1e-7)
    assert posthoc.get(slug)(ridge=0.0).fit(np.ones((5, 3))).dropped == 3


def test_the_same_for_batch_normalisation_whose_absolute_default_stays() -> None:
    variance = SINGLE.var(axis=0)
    expected = (SINGLE - SINGLE.mean(0)) / np.sqrt(variance + 0.2 * variance.mean())
    for unit in (1, 1e-4):
        np.testing.assert_allclose(posthoc.batch_norm(ridge=0.2).fit_transform(unit * SINGLE), expected, rtol=1e-9)
    np.testing.assert_allclose(
        posthoc.batch_norm().fit_transform(SINGLE), (SINGLE - SINGLE.mean(0)) / np.sqrt(variance + 1e-5), rtol=1e-9
    )


@pytest.mark.parametrize("slug", ["zca", "batch_norm"])
def test_epsilon_is_given_once(slug: str) -> None:
    with pytest.raises(InputError, match="ridge .* or eps .*, not both"):
        posthoc.get(slug)(ridge=0.1, eps=0.2)


def notes(transform: posthoc.CataloguedTransform, points: np.ndarray) -> str:
    return " | ".join(transform.fit(points).learnt.notes)


def test_an_epsilon_that_swamps_the_variances_is_said() -> None:
    tiny = 1e-3 * RNG.normal(size=(100, 6))  # mean variance 1e-6
    times = 440_000 * tiny.var(axis=0, ddof=1).mean()
    assert "ε is 440,000 times the mean variance: this is plain centring" in notes(posthoc.zca(eps=times), tiny)
    assert notes(posthoc.zca(ridge=0.1), tiny) == notes(posthoc.zca(strength=0.0, eps=times), tiny) == ""
    uneven = tiny * np.array([9, 1, 1, 1, 1, 1])
    assert "50 times the mean variance: directions hardly" in notes(posthoc.pca_whitening(ridge=50), uneven)
    sigma = 1e-5**0.5 / 44**0.5  # of every dimension: ε of batch normalisation is 44 times its variance
    narrow = RNG.normal(size=(4000, 5)) * sigma
    after = posthoc.batch_norm().fit_transform(narrow).std(axis=0)
    assert f"The median σ after it is {np.median(after):.3f}, not 1" in notes(posthoc.batch_norm(), narrow)
    assert notes(posthoc.batch_norm(ridge=1e-5), narrow) == ""
    assert "all factors are almost equal" in notes(posthoc.isobn(), 1e-4 * SINGLE)


def test_few_points_become_a_simplex_and_it_is_said() -> None:
    few = RNG.normal(size=(20, 64))
    image = posthoc.zca().fit_transform(few)
    unit = image / np.linalg.norm(image, axis=1, keepdims=True)
    np.testing.assert_allclose((unit @ unit.T)[np.triu_indices(20, 1)], -1 / 19, atol=1e-9)
    assert "any two of the 20 rows that it is fitted on get the same cosine, −1/19" in notes(posthoc.zca(), few)
    for other in (posthoc.zca(strength=0.5), posthoc.zca(ridge=0.5), posthoc.pca_whitening(components=5)):
        assert "same cosine" not in notes(other, few)
    assert "same cosine" not in notes(posthoc.zca(), np.vstack([few, few[:1]]))  # two of them are one


def test_what_is_dropped_is_said() -> None:
    flat = CLOUD.copy()
    flat[:, 2], flat[:, 5] = 7.0, 1e-9 * CLOUD[:, 5]
    assert "2 of 10 directions hold almost no variance and are dropped" in notes(posthoc.zca(), flat)
    assert "no more than rounding noise: 2, 5" in notes(posthoc.batch_norm(), flat)
    assert "only 2 of 4 directions" in notes(posthoc.all_but_the_top(remove=4), flat[:, :2] @ CLOUD[:2])
    assert notes(posthoc.zca(), CLOUD) == notes(posthoc.all_but_the_top(remove=4), CLOUD) == ""
