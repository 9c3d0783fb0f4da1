"""Truncation keeps the first dimensions, also as factors and after other steps."""

from __future__ import annotations

import numpy as np
import pytest

from isoviz import posthoc
from isoviz.errors import InputError
from isoviz.posthoc.factored import FactoredCloud

POINTS = np.random.default_rng(0).normal(size=(40, 6)) * np.arange(1, 7) + 2.0


def test_the_first_dimensions_stay_as_they_are() -> None:
    assert posthoc.truncation(keep=2).fit_transform(POINTS) == pytest.approx(POINTS[:, :2])
    assert posthoc.truncation().fit_transform(POINTS) == pytest.approx(POINTS)
    with pytest.raises(InputError, match="at most 6"):
        posthoc.truncation(keep=7).fit(POINTS)


def test_as_factors_it_is_the_same_image() -> None:
    train, validation = POINTS[:25], POINTS[25:]
    cloud = FactoredCloud.of_points(train, validation, 1e-16)
    image = posthoc.truncation(keep=3).act(cloud)
    assert image.image(image.validation) == pytest.approx(validation[:, :3])
    whitened = posthoc.zca().act(image.along("principal"))
    chain = posthoc.chain([posthoc.truncation(keep=3), posthoc.zca()]).fit(train)
    assert whitened.image(whitened.validation) == pytest.approx(chain.transform(validation))
