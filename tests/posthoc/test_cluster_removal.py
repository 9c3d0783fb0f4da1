"""Cluster-based removal against a loop, on blobs whose clusters are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isoviz import metrics
from isoviz.errors import InputError
from isoviz.posthoc import all_but_the_top, cluster_based
from tests.posthoc.clouds import cloud


def blobs(sizes=(40, 25, 30), d=6, seed=0):
    rng = np.random.default_rng(seed)
    label = np.repeat(np.arange(len(sizes)), sizes)
    rng.shuffle(label)
    centres = 60 * np.eye(len(sizes), d)
    return centres[label] + rng.normal(size=(len(label), d)) * np.linspace(3, 1, d), label


def looped(train, labels, points, assigned, remove):
    image = np.empty_like(points)
    for i, point in enumerate(points):
        members = train[labels == assigned[i]]
        mean = members.mean(axis=0)
        centred = point - mean
        _, _, rows = np.linalg.svd(members - mean)
        for u in rows[: min(remove, len(members) - 1)]:
            centred = centred - (u @ (point - mean)) * u
        image[i] = centred
    return image


@pytest.mark.parametrize("remove", [0, 1, 2])
def test_against_the_loop_on_train_and_dev(remove):
    train, labels = blobs()
    dev, dev_labels = blobs(seed=1)
    transform = cluster_based(n_clusters=3, remove=remove).fit(train)
    np.testing.assert_allclose(transform.transform(train), looped(train, labels, train, labels, remove), atol=1e-9)
    np.testing.assert_allclose(transform.transform(dev), looped(train, labels, dev, dev_labels, remove), atol=1e-9)
    assert transform.flattened == 0


def test_one_cluster_is_all_but_the_top():
    train, dev = cloud(), cloud(10, seed=1)
    np.testing.assert_allclose(
        cluster_based(n_clusters=1, remove=2).fit(train).transform(dev),
        all_but_the_top(remove=2).fit(train).transform(dev),
        atol=1e-10,
    )


def test_cluster_means_are_gone():
    train, labels = blobs()
    image = cluster_based(n_clusters=3, remove=1).fit_transform(train)
    for cluster in range(3):
        np.testing.assert_allclose(image[labels == cluster].mean(axis=0), 0, atol=1e-9)
    assert metrics.isoscore(image) > metrics.isoscore(train)


def test_clusters_too_small_become_zero_and_are_counted():
    train, labels = blobs(sizes=(40, 3, 30))
    transform = cluster_based(n_clusters=3, remove=2).fit(train)
    assert transform.flattened == 1
    image = transform.transform(train)
    np.testing.assert_allclose(image[labels == 1], 0, atol=1e-9)
    assert np.abs(image[labels == 0]).max() > 1
    # a cluster of 3 points spans 2 directions: a new point keeps its other 4
    other = train[labels == 1].mean(axis=0) + np.eye(6)
    assert np.linalg.matrix_rank(transform.transform(other), tol=1e-6) == 4


def test_the_seed_fixes_the_clusters():
    train = cloud(150, 5)
    first = cluster_based(n_clusters=10, remove=1, seed=3).fit_transform(train)
    np.testing.assert_array_equal(first, cluster_based(n_clusters=10, remove=1, seed=3).fit_transform(train))
    assert not np.array_equal(first, cluster_based(n_clusters=10, remove=1, seed=4).fit_transform(train))


def test_it_has_no_affine_form():
    train, _ = blobs()
    assert cluster_based(n_clusters=3, remove=1).fit(train).affine() is None


def test_gradients_pass_through_the_clusters():
    train, _ = blobs()
    transform = cluster_based(n_clusters=3, remove=2).fit(train)
    points = torch.tensor(train[:4], requires_grad=True)
    assert torch.autograd.gradcheck(transform.transform, points)


def test_too_many_clusters_or_directions():
    train = np.repeat(cloud(6, 4), 5, axis=0)
    with pytest.raises(InputError, match="n_clusters must be at most 6, the number of distinct points, got 7"):
        cluster_based(n_clusters=7, remove=1).fit(train)
    assert cluster_based(n_clusters=6, remove=1).fit(train).flattened == 6
    with pytest.raises(InputError, match="remove must be at most 4, .* got 5"):
        cluster_based(n_clusters=2, remove=5).fit(train)
    with pytest.raises(InputError, match="n_clusters must be at most 6, .* got 27"):
        cluster_based(remove=1).fit(train)
