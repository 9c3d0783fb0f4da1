"""What removes directions, means or dimensions, against loops over points."""

from __future__ import annotations

import math

import numpy as np
import pytest

from isoviz.errors import InputError
from isoviz.posthoc import (
    all_but_the_top,
    chain,
    cluster_based,
    mean_removal,
    random_dimensions,
    truncation,
    without_dimension,
    zca,
)
from tests.posthoc.clouds import cloud

# ------------------------------------------------------------------------------------------------------ clusters


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


# ------------------------------------------------------------------------------------------------------ top directions


def without_top(train, points, remove, literal):
    mean = train.mean(axis=0)
    _, _, rows = np.linalg.svd(train - mean)
    image = []
    for point in points:
        centred = point - mean
        for u in rows[:remove]:
            centred = centred - (u @ (point if literal else point - mean)) * u
        image.append(centred)
    return np.array(image)


@pytest.mark.parametrize("shape", [(120, 8), (6, 8)])
@pytest.mark.parametrize("remove", [0, 1, 3])
@pytest.mark.parametrize("literal", [False, True])
def test_against_the_loop(shape, remove, literal):
    train, dev = cloud(*shape), cloud(10, 8, seed=1)
    transform = all_but_the_top(remove=remove, literal=literal).fit(train)
    assert transform.removed == remove
    np.testing.assert_allclose(transform.transform(dev), without_top(train, dev, remove, literal), rtol=1e-9, atol=1e-9)


def test_no_more_than_the_rank_is_removed():
    transform = all_but_the_top(remove=7).fit(cloud(4, 9))
    assert transform.removed == 3
    dev = cloud(5, 9, seed=1)
    assert np.linalg.matrix_rank(transform.transform(dev)) == 5  # the rest of the space is left alone


# ------------------------------------------------------------------------------------------------------ mean, dimensions


def without_mean(train, points):
    d = train.shape[1]
    mean = [sum(row[j] for row in train) / len(train) for j in range(d)]
    length = math.sqrt(sum(value * value for value in mean))
    unit = [value / length for value in mean]
    image = []
    for x in points:
        along = sum(x[j] * unit[j] for j in range(d))
        rest = [x[j] - along * unit[j] for j in range(d)]
        stretch = math.sqrt(sum(v * v for v in x)) / math.sqrt(sum(v * v for v in rest))
        image.append([v * stretch for v in rest])
    return np.array(image)


def test_against_a_loop():
    train, dev = cloud(), cloud(9, seed=1)
    transform = mean_removal().fit(train)
    image = transform.transform(dev)
    np.testing.assert_allclose(image, without_mean(train, dev), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(image, axis=1), np.linalg.norm(dev, axis=1), rtol=1e-12)
    np.testing.assert_allclose(image @ train.mean(axis=0), 0, atol=1e-10)
    assert transform.removed == 1 and transform.affine() is None


def test_points_on_the_line_of_the_mean_map_to_zero():
    train = cloud()
    mean = train.mean(axis=0)
    points = np.stack([mean, -3 * mean, mean + 1e-3 * np.eye(8)[0], np.zeros(8)])
    image = mean_removal().fit(train).transform(points)
    np.testing.assert_array_equal(image[[0, 1, 3]], 0)
    assert np.linalg.norm(image[2]) == pytest.approx(np.linalg.norm(points[2]))
    single = mean_removal().fit(train.astype(np.float32)).transform(mean.astype(np.float32)[None])
    # rounding may leave a direction
    assert np.linalg.norm(single) in (0, pytest.approx(np.linalg.norm(mean), rel=1e-6))


def test_without_a_mean_nothing_is_removed():
    for train in (zca().fit_transform(cloud()), np.array([[1.0, 2.0], [-1.0, -2.0]])):
        transform = mean_removal().fit(train)
        assert transform.removed == 0
        np.testing.assert_array_equal(transform.transform(train), train)
    again = chain([mean_removal(), mean_removal()]).fit(cloud())
    assert [step.removed for step in again.steps] == [1, 1]  # the image's own mean points elsewhere


def test_truncation_keeps_the_first_dimensions_as_they_are():
    points = cloud(40, 6)
    assert truncation(keep=2).fit_transform(points) == pytest.approx(points[:, :2])
    assert truncation().fit_transform(points) == pytest.approx(points)
    with pytest.raises(InputError, match="at most 6"):
        truncation(keep=7).fit(points)


def test_random_dimensions_are_a_share_drawn_by_the_seed():
    points = np.random.default_rng(0).normal(size=(9, 7))
    images = [random_dimensions(seed=seed).fit_transform(points) for seed in range(20)]
    for image in images:
        places = [int(np.flatnonzero((points == column[:, None]).all(axis=0))[0]) for column in image.T]
        assert len(places) == 7 - round(3.5) and places == sorted(set(places))
    assert len({image.tobytes() for image in images}) > 10
    assert random_dimensions(seed=3).fit_transform(points) == pytest.approx(images[3])
    assert random_dimensions(drop=1).fit_transform(points).shape == (9, 1)
    assert random_dimensions(drop=0).fit_transform(points) == pytest.approx(points)


def test_one_dimension_is_dropped_by_its_number_from_0():
    points = np.random.default_rng(0).normal(size=(9, 4))
    for number in range(4):
        assert without_dimension(dimension=number).fit_transform(points) == pytest.approx(np.delete(points, number, 1))
    assert without_dimension().fit_transform(points[:, :1]) == pytest.approx(points[:, :1])
    with pytest.raises(InputError, match="dimension must be below 4"):
        without_dimension(dimension=4).fit(points)
