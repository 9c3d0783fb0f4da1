"""EmbedFilter on a bundled model's unembedding against the authors' formula by an SVD, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from isoviz.errors import InputError, IsoVizError
from isoviz.models import checkpoint, sources
from isoviz.posthoc import embed_filter

MODEL = "demo/tiny-bart"
POINTS = np.random.default_rng(1).normal(size=(40, 128)) + 1.0


@pytest.mark.parametrize("ratio", [2, 3])
def test_the_middle_of_the_spectrum_stays(ratio: int) -> None:
    weight = checkpoint.output_embeddings(sources.resolve(MODEL))
    assert weight is not None
    rows = np.linalg.svd(weight.astype(np.float64), full_matrices=False)[2]
    kept = 128 // ratio
    first = (128 - kept) // 2
    middle = rows[first : first + kept]
    fitted = embed_filter(model=MODEL, ratio=ratio).fit(POINTS)
    image = fitted.transform(POINTS)
    assert image.shape == (40, kept)
    np.testing.assert_allclose(image @ image.T, POINTS @ middle.T @ middle @ POINTS.T, atol=1e-8)
    middle *= np.sign(np.take_along_axis(middle, np.abs(middle).argmax(axis=1)[:, None], axis=1))  # as on any processor
    np.testing.assert_allclose(image, POINTS @ middle.T, atol=1e-6)
    np.testing.assert_allclose(fitted.affine().of_points(POINTS), image, atol=1e-12)


def test_what_it_refuses() -> None:
    for params, points in (({}, POINTS), ({"model": MODEL}, POINTS[:, :64]), ({"model": "demo/none"}, POINTS)):
        with pytest.raises(IsoVizError) as caught:
            embed_filter(**params).fit(points)
        assert caught.value.field == "model"
    with pytest.raises(InputError, match="ratio must be at most 128"):
        embed_filter(model=MODEL, ratio=200).fit(POINTS)
