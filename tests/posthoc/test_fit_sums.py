"""A fit on running sums learns what a fit on the points does."""

from __future__ import annotations

import numpy as np
import pytest

from isoviz import posthoc
from isoviz.errors import InputError
from isoviz.metrics.cloud import resolution
from isoviz.posthoc.protocol import CataloguedTransform

RNG = np.random.default_rng(3)
POINTS = RNG.normal(size=(500, 12)) @ RNG.normal(size=(12, 12)) + np.linspace(-3, 5, 12)
FLAT = np.c_[POINTS, POINTS[:, 0] - POINTS[:, 1]]
"""One direction has no variance."""
FROM_SUMS = [slug for slug in posthoc.catalogue() if posthoc.get(slug).fits_on != "points"]


def _from_sums(transform: posthoc.Transform, points: np.ndarray) -> posthoc.Transform:
    covariance = np.cov(points, rowvar=False)
    return transform.fit_sums(points.mean(axis=0), covariance, len(points), resolution(points))


@pytest.mark.parametrize("points", [POINTS, FLAT], ids=["full", "flat"])
@pytest.mark.parametrize("slug", FROM_SUMS)
def test_the_fit_is_the_same(slug: str, points: np.ndarray) -> None:
    kind: type[CataloguedTransform] = posthoc.get(slug)
    fitted, sums = kind().fit(points), _from_sums(kind(), points)
    assert [one.learnt.counts for one in (fitted, sums)] == [sums.learnt.counts] * 2
    np.testing.assert_allclose(sums.transform(points), fitted.transform(points), rtol=1e-8, atol=1e-8)


def test_a_chain_with_one_divisor_is_supported_and_others_are_refused() -> None:
    def chain(*slugs: str) -> posthoc.Chain:
        return posthoc.chain([posthoc.get(slug)() for slug in slugs])

    can = chain("all_but_the_top", "rotation", "zca")
    assert can.fits_on == "sample"
    expected = chain("all_but_the_top", "rotation", "zca").fit(POINTS).transform(POINTS)
    np.testing.assert_allclose(_from_sums(can, POINTS).transform(POINTS), expected, rtol=1e-7, atol=1e-7)
    assert chain("zca", "isobn").fits_on == "points", "n − 1 and n"
    assert chain("mean_removal", "zca").fits_on == "points", "a bent step moves no sums"
    assert chain("zca", "mean_removal").fits_on == "sample"
    assert chain().fits_on == "mean"
    with pytest.raises(InputError, match="fitted on the points themselves"):
        _from_sums(chain("cluster_based"), POINTS)
