"""IsoBN as a transform: against loops, and against the method that runs inside training."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from isoviz import methods, metrics
from isoviz.errors import InputError
from isoviz.posthoc import isobn
from tests.posthoc.clouds import cloud, with_constant


def looped(points, beta, eps, form):
    n, d = points.shape
    mean = [sum(points[:, i]) / n for i in range(d)]
    cov = [[sum((points[:, i] - mean[i]) * (points[:, j] - mean[j])) / n for j in range(d)] for i in range(d)]
    sigma = [cov[i][i] ** 0.5 for i in range(d)]
    theta = []
    for i in range(d):
        gamma = sum((cov[i][j] / (sigma[i] * sigma[j])) ** 2 for j in range(d)) / (d if form == "code" else 1)
        theta.append((sigma[i] * gamma + eps) ** -beta)
    guard = eps if form == "code" else 0
    root = (sum(s**2 for s in sigma) / (guard + sum((s * t) ** 2 for s, t in zip(sigma, theta, strict=True)))) ** 0.5
    return np.array([t * root for t in theta])


@pytest.mark.parametrize("form, eps", [("paper", 0.1), ("code", 1e-3)])
@pytest.mark.parametrize("beta", [0.25, 0.5, 1.0])
def test_against_the_loop_with_the_forms_own_floor(form, eps, beta):
    train, dev = cloud(), cloud(6, seed=1)
    transform = isobn(beta=beta, form=form).fit(train)
    np.testing.assert_allclose(transform.transform(dev), dev * looped(train, beta, eps, form), rtol=1e-11)
    fitted = isobn(beta=beta, form=form, eps=0.7).fit(train)
    np.testing.assert_allclose(fitted.transform(dev), dev * looped(train, beta, 0.7, form), rtol=1e-11)


def test_the_same_image_as_the_training_method_after_one_batch():
    train = cloud().astype(np.float32)
    kind = methods.get("isobn")
    method = kind(kind.Params(momentum=1.0))
    method.attach(SimpleNamespace(head_width=8))
    trained = method.transform(SimpleNamespace(pooled=torch.from_numpy(train)), training=True)
    ours = isobn().fit_transform(torch.from_numpy(train))
    torch.testing.assert_close(ours, trained, rtol=1e-5, atol=1e-5)


def test_the_codes_floor_is_d_times_the_papers_but_for_a_common_factor():
    train = cloud()
    ratio = isobn(form="code", eps=0.02).fit(train).affine().linear / isobn(eps=8 * 0.02).fit(train).affine().linear
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-12)
    assert ratio[0] < 1


def test_total_variance_is_kept_and_the_top_shrinks():
    train = cloud() * np.array([8.0, 1, 1, 1, 1, 1, 1, 1])
    image = isobn(beta=1.0).fit_transform(train)
    assert image.var(axis=0).sum() == pytest.approx(train.var(axis=0).sum(), rel=1e-12)
    assert metrics.explained_variance(image)[0] < metrics.explained_variance(train)[0]
    np.testing.assert_array_equal(isobn(beta=0).fit_transform(train), train)


def test_a_dimension_without_variance_changes_nothing():
    train = with_constant(cloud())
    rest = [0, 1, 3, 4, 5, 6, 7]
    image = isobn().fit_transform(train)
    np.testing.assert_allclose(image[:, rest], train[:, rest] * looped(train[:, rest], 0.5, 0.1, "paper"), rtol=1e-10)
    assert np.isfinite(image).all()


def test_a_cloud_without_variance_stays():
    train = np.full((5, 3), 0.1)
    np.testing.assert_array_equal(isobn().fit_transform(train), train)


@pytest.mark.parametrize("wrong", [{"eps": 0}, {"beta": -1}, {"form": "other"}, {"beta": float("nan")}])
def test_invalid_values(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        isobn(**wrong)
