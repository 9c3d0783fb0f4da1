"""Maps: PCA by its definition, UMAP reproducible; density lines and the points inside a line on maps made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isoviz.errors import InputError
from isoviz.exploring import maps
from isoviz.exploring.maps import MapRequest


@pytest.mark.parametrize("shape", [(40, 6), (5, 30)])
def test_pca_by_the_singular_values(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).standard_normal(shape) * np.linspace(1, 4, shape[1]) + 3
    projection = maps.pca(x, 3)
    centred = x - x.mean(axis=0)
    _, singular, axes = np.linalg.svd(centred, full_matrices=False)
    np.testing.assert_allclose(projection.shares, singular[:3] ** 2 / (singular**2).sum())
    for axis in range(3):
        right = axes[axis] * np.sign(axes[axis][np.abs(axes[axis]).argmax()])
        np.testing.assert_allclose(projection.axes[:, axis], right, atol=1e-9)
        np.testing.assert_allclose(projection.coordinates[:, axis], centred @ right, atol=1e-8)
    np.testing.assert_allclose(projection.place(x[:2]), projection.coordinates[:2], atol=1e-8)


def test_key_is_of_what_changes_the_picture() -> None:
    plain = MapRequest()
    assert plain.key(2, "cls") == replace(plain, neighbours=30).key(2, "cls")  # PCA does not look at it
    near = MapRequest("umap")
    different = [near, replace(near, neighbours=30), replace(near, seed=1), replace(near, dimensions=3), plain]
    keys = {request.key(2, "cls") for request in different} | {near.key(1, "cls"), near.key(2, "mean")}
    assert len(keys) == 7 and maps.MapRequest(**near.as_json()) == near


def test_coordinates_are_of_the_points_that_are_drawn() -> None:
    cloud, request = np.random.default_rng(1).standard_normal((40, 6)), MapRequest("pca", 3, points=12)
    placed = maps.coordinates(cloud, request)
    np.testing.assert_array_equal(placed, maps.pca(cloud[maps.sampled(40, request)], 3).coordinates)
    with pytest.raises(InputError, match="dimensions"):
        maps.coordinates(cloud, MapRequest(dimensions=4))


@pytest.mark.slow
def test_umap_repeats_itself_and_places_new_points_among_their_like() -> None:
    generator = np.random.default_rng(0)
    centres = 10 * np.eye(3, 12)
    cloud = np.concatenate([centre + generator.standard_normal((30, 12)) for centre in centres])
    request, progress = MapRequest("umap", neighbours=10), []
    first = maps.fit_umap(cloud, request, lambda done, total, text: progress.append((done, total, text)))
    again = maps.fit_umap(cloud, request)
    np.testing.assert_array_equal(first.embedding_, again.embedding_)
    np.testing.assert_array_equal(maps.coordinates(cloud, request), again.embedding_)
    assert [text for _, _, text in progress] == ["loading UMAP", "laying out the map"]

    fresh = np.concatenate([centre + generator.standard_normal((5, 12)) for centre in centres])
    placed = first.transform(fresh.astype(np.float32))
    np.testing.assert_array_equal(placed, again.transform(fresh.astype(np.float32)))
    groups = first.embedding_.reshape(3, 30, 2).mean(axis=1)
    nearest = np.linalg.norm(placed[:, None] - groups, axis=2).argmin(axis=1)
    assert nearest.tolist() == [0] * 5 + [1] * 5 + [2] * 5
    import numba
    from umap.umap_ import smooth_knn_dist

    assert not numba.njit(lambda: 0).stats.cache_path and smooth_knn_dist.stats.cache_path, "only UMAP's code is kept"


def test_axes_of_very_many_points_are_of_some_and_place_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maps, "MOST_FITTED", 300)
    monkeypatch.setattr(maps, "_BLOCK", 128)
    points = (np.random.default_rng(0).normal(size=(1_000, 6)) * (9, 5, 1, 1, 1, 1)).astype(np.float16)
    projection = maps.pca(points)
    some = np.sort(np.random.default_rng(0).choice(1_000, 300, replace=False, shuffle=False))
    expected = maps.pca(points[some])
    np.testing.assert_array_equal(projection.axes, expected.axes)
    np.testing.assert_allclose(projection.coordinates[some], expected.coordinates, atol=1e-12)
    assert len(projection.coordinates) == 1_000
    flat, solid, umap = (MapRequest(kind, size, 1_000) for kind, size in (("pca", 2), ("pca", 3), ("umap", 2)))
    assert [len(maps.sampled(1_000, request)) for request in (flat, solid, umap)] == [1_000, 300, 300]


def test_agrees_with_counting_crossings_one_by_one() -> None:
    generator = np.random.default_rng(0)
    points, corners = generator.uniform(-3, 3, (500, 2)), generator.uniform(-3, 3, (9, 2))
    expected = []
    for x, y in points:  # a ray to the right, solved edge by edge as two equations
        crossings = 0
        for one, other in zip(corners, np.roll(corners, -1, axis=0), strict=True):
            edge = other - one
            if abs(edge[1]) > 1e-12:
                share = (y - one[1]) / edge[1]
                crossings += bool(0 <= share < 1 and one[0] + share * edge[0] > x)
        expected.append(crossings % 2 == 1)
    assert maps.inside(points, corners).tolist() == expected


def test_long_line_is_shortened_and_still_holds_the_same() -> None:
    angle = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    lasso = np.stack([50 + 30 * np.cos(angle), 20 + 10 * np.sin(angle)], axis=1)
    short = maps.shortened_line(lasso)
    assert len(short) == maps.MOST_CORNERS
    points = np.random.default_rng(1).uniform((0, 0), (100, 40), (2_000, 2))
    assert (maps.inside(points, lasso) != maps.inside(points, short)).mean() < 0.005
    assert maps.line_of(maps.line_text(short)) == short
