"""Language removal against loops over languages: means, LIR, one row, unknown languages, chains, states and tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isoviz import posthoc
from isoviz.errors import InputError
from isoviz.posthoc import chain, language_removal, zca

RNG = np.random.default_rng(5)
GROUPS = np.array([0] * 30 + [1] * 25 + [2] * 1 + [-1] * 4)
POINTS = RNG.normal(size=(60, 6)) + 8 * RNG.normal(size=(3, 6))[np.maximum(GROUPS, 0)]
NEW, NEW_GROUPS = RNG.normal(size=(5, 6)) + 3, np.array([1, 0, 2, -1, 7])


def test_means_are_those_of_the_language_and_of_all_rows_where_it_is_unknown() -> None:
    fitted = language_removal().fit(POINTS, GROUPS)
    image = fitted.transform(NEW, NEW_GROUPS)
    for row, group in enumerate(NEW_GROUPS):
        mean = POINTS[group == GROUPS].mean(axis=0) if group in (0, 1, 2) else POINTS.mean(axis=0)
        np.testing.assert_allclose(image[row], NEW[row] - mean, atol=1e-12)
    own = fitted.transform(POINTS, GROUPS)
    np.testing.assert_allclose([own[group == GROUPS].mean(axis=0) for group in (0, 1)], 0, atol=1e-12)
    np.testing.assert_allclose(own[55], 0, atol=1e-12)  # the language with one row
    assert fitted.single == 1


@pytest.mark.parametrize("remove", [1, 3])
def test_directions_are_removed_as_in_the_authors_notebook(remove: int) -> None:
    image = language_removal(form="directions", remove=remove).fit(POINTS, GROUPS).transform(NEW, NEW_GROUPS)
    for row, group in enumerate(NEW_GROUPS):
        rows = POINTS[group == GROUPS] if group in (0, 1, 2) else POINTS
        u, lengths, _ = np.linalg.svd(rows.T, full_matrices=False)
        c = u[:, : min(remove, np.count_nonzero(lengths > 1e-9))]  # one row has one direction
        np.testing.assert_allclose(image[row], NEW[row] - NEW[row] @ c @ c.T, atol=1e-9)


def test_it_passes_through_chains_states_and_tensors() -> None:
    transform = chain([language_removal(form="directions"), zca(strength=0.5)]).fit(POINTS, GROUPS)
    assert transform.needs == "groups" and transform.affine() is None
    image = transform.transform(NEW, NEW_GROUPS)
    np.testing.assert_allclose(transform.transform(torch.tensor(NEW), NEW_GROUPS).numpy(), image, atol=1e-10)
    assert transform.transform(NEW[:0], NEW_GROUPS[:0]).shape == (0, 6)
    points = torch.tensor(NEW, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: transform.transform(x, NEW_GROUPS), points)


def test_every_row_needs_a_group() -> None:
    wrong = (None, GROUPS[:-1], GROUPS.astype(float), np.full(60, -2))
    for groups in wrong:
        with pytest.raises(InputError) as caught:
            posthoc.language_removal().fit(POINTS, groups)
        assert caught.value.field == "groups"
    with pytest.raises(InputError) as caught:
        language_removal().fit(POINTS, GROUPS).transform(NEW)
    assert caught.value.field == "groups"
    with pytest.raises(InputError, match="remove must be at most 6"):
        language_removal(form="directions", remove=7).fit(POINTS, GROUPS)
