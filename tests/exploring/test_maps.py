"""PCA against the definition by numpy's own decomposition; UMAP reproducible, its transform at home in its own map."""

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


def test_pca_of_copies_has_no_shares_and_of_too_few_points_no_axes() -> None:
    projection = maps.pca(np.ones((6, 4)), 2)
    assert np.isnan(projection.shares).all() and (projection.coordinates == 0).all()
    with pytest.raises(InputError, match="2 points in 9 dimensions have no 2 axes"):
        maps.pca(np.zeros((2, 9)), 2)


def test_key_is_of_what_changes_the_picture() -> None:
    plain = MapRequest()
    assert plain.key(2, "cls") == replace(plain, neighbours=30).key(2, "cls")  # PCA does not look at it
    near = MapRequest("umap")
    different = [near, replace(near, neighbours=30), replace(near, seed=1), replace(near, dimensions=3), plain]
    keys = {request.key(2, "cls") for request in different} | {near.key(1, "cls"), near.key(2, "mean")}
    assert len(keys) == 7 and maps.from_json(near.as_json()) == near


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kind": "tsne"}, "kind: got tsne"),
        ({"dimensions": 4}, "dimensions: got 4"),
        ({"metric": "manhattan"}, "allowed: cosine, euclidean"),
        ({"points": 4}, "points: must be at least 5"),
        ({"min_dist": 2.0}, "min_dist: must be at least 0, at most 1"),
    ],
)
def test_settings_that_are_not_allowed(wrong: dict, message: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(InputError, match=message):
        MapRequest(**wrong).check()


def test_draw_is_named_by_its_seed() -> None:
    assert maps.sampled(7, MapRequest(points=7)).tolist() == list(range(7))
    first, again, other = (maps.sampled(50, MapRequest(points=9, seed=seed)) for seed in (0, 0, 1))
    assert len(set(first)) == 9 and (np.diff(first) > 0).all()
    assert (first == again).all() and (first != other).any()


def test_coordinates_are_of_the_points_that_are_drawn() -> None:
    cloud, request = np.random.default_rng(1).standard_normal((40, 6)), MapRequest("pca", 3, points=12)
    placed = maps.coordinates(cloud, request)
    np.testing.assert_array_equal(placed, maps.pca(cloud[maps.sampled(40, request)], 3).coordinates)
    with pytest.raises(InputError, match="dimensions"):
        maps.coordinates(cloud, MapRequest(dimensions=4))


def test_umap_refuses_what_has_no_neighbours() -> None:
    with pytest.raises(InputError, match="at least 5"):
        maps.fit_umap(np.zeros((4, 3)), MapRequest("umap"))
    with pytest.raises(InputError, match="all points of this cloud are identical"):
        maps.fit_umap(np.ones((9, 3)), MapRequest("umap"))


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
    assert any("laying out the map, step" in text for _, _, text in progress) and progress[-1][0] == 100

    fresh = np.concatenate([centre + generator.standard_normal((5, 12)) for centre in centres])
    placed = first.transform(fresh.astype(np.float32))
    np.testing.assert_array_equal(placed, again.transform(fresh.astype(np.float32)))
    groups = first.embedding_.reshape(3, 30, 2).mean(axis=1)
    nearest = np.linalg.norm(placed[:, None] - groups, axis=2).argmin(axis=1)
    assert nearest.tolist() == [0] * 5 + [1] * 5 + [2] * 5


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


def test_layers_of_a_film_are_turned_onto_the_one_before() -> None:
    first = np.random.default_rng(0).normal(size=(200, 5)) * (9, 4, 0.1, 0.1, 0.1)
    angle = np.radians(70)
    turn = np.eye(5)
    turn[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    flat = np.ones((200, 5))
    maps_of_layers = maps.aligned_pca([first, 7 * first @ turn + 3, -first, flat, first])
    one, other, mirrored, dead, last = maps_of_layers
    np.testing.assert_allclose(other.coordinates, one.coordinates, atol=1e-9)
    np.testing.assert_allclose(mirrored.coordinates, one.coordinates, atol=1e-9)
    assert not dead.coordinates.any() and np.square(last.coordinates).sum() == pytest.approx(200)
    np.testing.assert_allclose(other.place(7 * first @ turn + 3), other.coordinates, atol=1e-9)
    film = MapRequest(film=True)
    assert film.key(1, "cls") != MapRequest().key(1, "cls") and len(maps.sampled(9_000, film)) == 2_000
