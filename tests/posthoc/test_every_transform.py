"""What all transforms promise: parity of numpy and torch, defined answers, affine form, and a cheap catalogue."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isoviz import posthoc
from isoviz.errors import InputError
from isoviz.parameters import bounds, start_values
from isoviz.posthoc import chain
from tests.posthoc.clouds import AWKWARD, cloud

MAKE = {
    "zca": lambda: posthoc.zca(),
    "zca at half strength": lambda: posthoc.zca(strength=0.5),
    "zca at strength zero": lambda: posthoc.zca(strength=0),
    "zca with a ridge": lambda: posthoc.zca(eps=1e-3),
    "pca_whitening": lambda: posthoc.pca_whitening(),
    "pca_whitening of one component": lambda: posthoc.pca_whitening(components=1),
    "all_but_the_top": lambda: posthoc.all_but_the_top(remove=1),
    "all_but_the_top, literal": lambda: posthoc.all_but_the_top(remove=1, literal=True),
    "cluster_based": lambda: posthoc.cluster_based(n_clusters=2, remove=1),
    "isobn": lambda: posthoc.isobn(),
    "isobn, code": lambda: posthoc.isobn(form="code", beta=1),
    "batch_norm": lambda: posthoc.batch_norm(),
    "batch_norm without floor": lambda: posthoc.batch_norm(eps=0),
    "rotation": lambda: posthoc.rotation(seed=3),
    "quantisation to two bits": lambda: posthoc.quantisation(bits=2),
    "binary from 0": lambda: posthoc.binary(),
    "shift": lambda: posthoc.shift(by=-2),
    "scale": lambda: posthoc.scale(factor=3),
    "chain": lambda: chain([posthoc.all_but_the_top(remove=1), posthoc.isobn(), posthoc.pca_whitening()]),
    "chain with clusters": lambda: chain([posthoc.batch_norm(), posthoc.cluster_based(n_clusters=2, remove=1)]),
    "empty chain": lambda: chain([]),
}
for kind in posthoc.catalogue().values():  # one that is not named above is tried as What-if adds it
    if kind.slug not in MAKE and not kind.needs:  # those that need more than points have a test of their own
        MAKE[kind.slug] = functools.partial(kind, **start_values(kind.Params))
everyone = pytest.mark.parametrize("name", list(MAKE))
AFFINE = [name for name, make in MAKE.items() if make().fit(cloud()).affine() is not None]


def test_the_catalogue_has_what_is_promised():
    promised = {"zca", "pca_whitening", "all_but_the_top", "cluster_based", "isobn", "batch_norm"}
    assert promised <= set(posthoc.catalogue())
    for slug, kind in posthoc.catalogue().items():
        assert getattr(posthoc, slug) is kind
        assert slug in dir(posthoc)
        assert posthoc.get(slug).slug == slug


@pytest.mark.parametrize("slug", list(posthoc.catalogue()))
def test_every_transform_warns_of_its_traps_and_keeps_its_bounds(slug):
    kind = posthoc.get(slug)
    assert kind.traps
    for name, field in kind.Params.model_fields.items():
        for bound, limit in bounds(field).items():
            with pytest.raises(InputError, match=f"{name}: "):
                kind(**{name: limit - 1 if bound in ("ge", "gt") else limit + 1})


def test_names_that_do_not_exist():
    with pytest.raises(AttributeError, match="no attribute 'zac'"):
        posthoc.zac  # noqa: B018
    with pytest.raises(InputError, match="did you mean 'zca'"):
        posthoc.get("zcaa")
    with pytest.raises(InputError, match="unknown parameter of 'zca' 'strenght'; did you mean 'strength'"):
        posthoc.zca(strenght=1)


def test_parameters_are_seen_by_notebooks_and_may_be_numpy_numbers():
    import inspect

    assert list(inspect.signature(posthoc.all_but_the_top).parameters) == ["remove", "literal"]
    assert posthoc.all_but_the_top(remove=np.int64(3)).params.remove == 3
    assert repr(posthoc.isobn(beta=np.float32(0.25))) == "isobn(beta=0.25, eps=None, form='paper')"
    with pytest.raises(InputError, match="remove: .*integer"):
        posthoc.all_but_the_top(remove=2.5)


@everyone
def test_fit_returns_itself_and_leaves_the_points_alone(name):
    train, dev = cloud(), cloud(9, seed=1)
    before, before_dev = train.copy(), dev.copy()
    transform = MAKE[name]()
    assert transform.fit(train) is transform
    image = transform.transform(dev)
    assert image.dtype == np.float64
    assert image.shape[0] == 9
    assert not np.shares_memory(image, dev)
    np.testing.assert_array_equal(train, before)
    np.testing.assert_array_equal(dev, before_dev)
    np.testing.assert_array_equal(MAKE[name]().fit_transform(train), transform.transform(train))
    assert transform.transform(dev[:0]).shape == (0, image.shape[1])
    np.testing.assert_allclose(transform.transform(dev[3:4]), image[3:4], rtol=1e-12, atol=1e-12)


@everyone
def test_a_tensor_comes_back_as_a_tensor(name):
    train, dev = cloud(), cloud(9, seed=1)
    expected = MAKE[name]().fit(train).transform(dev)
    double = MAKE[name]().fit(torch.tensor(train)).transform(torch.tensor(dev))
    assert double.dtype == torch.float64
    np.testing.assert_allclose(double.numpy(), expected, rtol=1e-10, atol=1e-11)
    single, single_dev = train.astype(np.float32), dev.astype(np.float32)
    transformed = MAKE[name]().fit(torch.tensor(single)).transform(torch.tensor(single_dev))
    assert transformed.dtype == torch.float32
    # computed in float64, rounded once: equal to numpy on the same float32 numbers up to that rounding
    np.testing.assert_allclose(
        transformed.numpy(), MAKE[name]().fit(single).transform(single_dev), rtol=2e-7, atol=1e-12
    )
    half = MAKE[name]().fit(train).transform(torch.tensor(dev).bfloat16())
    assert half.dtype == torch.float32


@everyone
def test_gradients_reach_the_points(name):
    transform = MAKE[name]().fit(cloud())
    points = torch.tensor(cloud(3, seed=1), requires_grad=True)
    assert torch.autograd.gradcheck(transform.transform, points)


def test_autocast_does_not_lower_the_precision():
    transform = posthoc.zca().fit(cloud())
    dev = torch.tensor(cloud(9, seed=1), dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = transform.transform(dev)
    assert torch.equal(inside, transform.transform(dev))


@everyone
def test_nothing_infinite_ever_comes_out(name):
    for kind, train in AWKWARD.items():
        transform = MAKE[name]()
        try:
            transform.fit(train)
        except InputError as error:
            assert "cluster" in name and "number of distinct points" in str(error), kind
            continue
        dev = train + np.abs(train).max() * np.random.default_rng(0).normal(size=train.shape) + 1.0
        for points in (train, dev):
            assert np.isfinite(transform.transform(points)).all(), kind
            assert torch.isfinite(transform.transform(torch.tensor(points))).all(), kind


@pytest.mark.parametrize("name", [name for name in MAKE if "cluster" not in name])
def test_a_collapsed_fit_set(name):
    train = np.full((6, 4), 2.5)
    image = MAKE[name]().fit_transform(train)
    if name in {"isobn", "isobn, code", "truncation", "empty chain", "quantisation", "quantisation to two bits"}:
        np.testing.assert_array_equal(image, train)
    elif name in {"random_dimensions", "without_dimension"}:
        np.testing.assert_array_equal(image, train[:, : 2 if name == "random_dimensions" else 3])
    elif name in {"binary", "binary from 0"}:  # one sign
        np.testing.assert_array_equal(image, {"binary": -1, "binary from 0": 1}[name])
    elif name == "all_but_the_top, literal":
        np.testing.assert_allclose(image, 0, atol=1e-15)  # no direction to remove: only centred
    elif name in {"rotation", "shift", "scale"}:  # they look at no spread, or shift by a multiple of it
        np.testing.assert_array_equal(image, np.broadcast_to(image[0], image.shape))
        factor = {"rotation": 1, "shift": 1, "scale": 3}[name]
        assert np.linalg.norm(image[0]) == pytest.approx(factor * np.linalg.norm(train[0]))
    else:
        np.testing.assert_array_equal(image, 0)


@pytest.mark.parametrize(
    "points, reason",
    [
        (np.ones((1, 3)), "fit needs at least 2 points, got 1"),
        (np.ones((0, 3)), "fit needs at least 2 points, got 0"),
        (np.ones(3), r"shape \(points, dimensions\)"),
        (np.array([[1.0, np.nan], [0.0, 1.0]]), "finite, got 1 of 4"),
        (np.array([[1.0, np.inf], [0.0, 1.0]]), "finite, got 1 of 4"),
        (np.array([[1.0, 1e200], [0.0, 1.0]]), r"within ±1e\+100, got an entry of size 1e\+200"),
    ],
)
def test_unfittable_input_is_refused(points, reason):
    for make in (MAKE["zca"], MAKE["chain"]):  # the check is that of `Transform`
        with pytest.raises(InputError, match=reason):
            make().fit(points)


@everyone
def test_untransformable_input_is_refused(name):
    transform = MAKE[name]()
    for use in (lambda: transform.transform(cloud()), transform.affine):
        with pytest.raises(InputError, match=r"not fitted yet: call fit\(points\) first"):
            use()
    transform.fit(cloud())
    for wrong in (cloud(5, 7), torch.tensor(cloud(5, 7))):
        with pytest.raises(InputError, match="must have 8 dimensions as the fit set had, got 7"):
            transform.transform(wrong)
    for wrong in (np.full((2, 8), np.nan), torch.full((2, 8), torch.inf)):
        with pytest.raises(InputError, match="finite, got 16 of 16"):
            transform.transform(wrong)
    with pytest.raises(InputError, match="within"):
        transform.transform(torch.full((2, 8), 1e200, dtype=torch.float64))


@settings(max_examples=20, deadline=None, derandomize=True)
@given(name=st.sampled_from(AFFINE), n=st.integers(2, 30), d=st.integers(1, 9), seed=st.integers(0, 2**32))
def test_the_affine_form_is_the_transform(name, n, d, seed):
    train, dev = cloud(n, d, seed), cloud(12, d, seed + 1)
    transform = MAKE[name]().fit(train)
    affine = transform.affine()
    matrix, offset = affine
    image = transform.transform(dev)
    unit = np.abs(image).max() + np.abs(offset).max() + 1e-12
    np.testing.assert_allclose(dev @ matrix + offset, image, atol=1e-9 * unit)
    np.testing.assert_allclose(affine.of_points(dev), image, atol=1e-9 * unit)


def test_a_chain_fits_each_step_on_what_came_before():
    train, dev = cloud(), cloud(9, seed=1)
    fitted = chain([posthoc.all_but_the_top(remove=2), posthoc.isobn(), posthoc.pca_whitening(components=3)])
    first = posthoc.all_but_the_top(remove=2).fit(train)
    second = posthoc.isobn().fit(first.transform(train))
    third = posthoc.pca_whitening(components=3).fit(second.transform(first.transform(train)))
    expected = third.transform(second.transform(first.transform(dev)))
    np.testing.assert_allclose(fitted.fit(train).transform(dev), expected, rtol=1e-12)
    assert fitted.steps[0].removed == 2
