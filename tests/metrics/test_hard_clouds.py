"""Measures of hard clouds against independent computations: singular values of the centred points, and plain sums over pairs."""

from __future__ import annotations

import numpy as np
import pytest

from isoviz import metrics
from isoviz.metrics.sample import Sample
from tests.hard_clouds import hard_clouds

CLOUDS = hard_clouds()


def expected(points: np.ndarray) -> dict[str, float]:
    """NaN where a measure is undefined; without those that need neighbours."""
    eps = 2.0**-23 if points.dtype == np.float32 else 2.0**-52
    x = points.astype(np.float64)
    x = x / (np.abs(x).max() or 1.0)
    n, d = x.shape
    centred = x - x[0]
    centred = centred - centred.mean(axis=0)
    lengths = np.linalg.norm(x, axis=1)
    unit = x[lengths > 0] / lengths[lengths > 0, None]
    above = np.triu_indices(len(unit), 1)
    found = {"mean_cosine": (unit @ unit.T)[above].mean() if len(unit) > 1 else np.nan}
    sizes = np.linalg.svd(x, compute_uv=False)
    sizes = sizes[sizes**2 > min(n, d) * 2.0**-52 * sizes[0] ** 2]
    shares = sizes / sizes.sum()
    found["rankme"] = np.exp(-(shares @ np.log(shares))) if len(sizes) else np.nan
    names = ("isoscore", "participation_ratio", "ev_1", "effective_rank", "alpha_req", "rogue_share", "abs_correlation")
    if np.all(centred.std(axis=0) <= eps * np.abs(x.mean(axis=0))):
        return found | dict.fromkeys(names, np.nan)
    values = np.linalg.svd(centred, compute_uv=False) ** 2
    values = values[values > min(n, d) * 2.0**-52 * values[0]]
    ratio = values.sum() ** 2 / (values**2).sum()
    shares = values / values.sum()
    wide = values[values > 2.0**-38 * values[0]]
    possible = min(n - 1, d)
    size = possible if possible - len(wide) <= min(possible, 100) // 10 else len(wide)
    left_out = min(size, 100) // 10
    ranks = np.arange(left_out + 1, min(size - left_out, 100) + 1)
    slope = np.polyfit(np.log(ranks), np.log(wide[ranks - 1]), 1, w=ranks**-0.5)[0] if len(wide) > 1 else np.nan
    spread = centred.std(axis=0)
    varies = spread > 1e-12 * spread.max()
    correlation = np.abs(np.corrcoef(centred[:, varies].T)) if varies.sum() > 1 else np.full((2, 2), np.nan)
    return found | dict(
        zip(
            names,
            [
                (ratio - 1) / (d - 1) if d > 1 else np.nan,
                ratio,
                shares[0],
                np.exp(-(shares @ np.log(shares))),
                -slope,
                (spread**2).max() / (spread**2).sum(),
                correlation[np.triu_indices(len(correlation), 1)].mean(),
            ],
            strict=True,
        )
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CLOUDS)
def test_a_measure_of_a_hard_cloud_is_right_or_undefined(name: str) -> None:
    sample = Sample(CLOUDS[name])
    for slug, value in expected(CLOUDS[name]).items():
        found = metrics.get(slug).estimate(sample)  # type: ignore[misc]
        np.testing.assert_allclose(found.value, value, rtol=1e-6, atol=1e-9, err_msg=slug)
        assert bool(found.problem) == bool(np.isnan(value)), slug
