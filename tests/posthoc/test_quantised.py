"""Quantisation against sentence-transformers, its error bound, cutting, and what signs keep with and without centring."""

from __future__ import annotations

import numpy as np
import pytest
from sentence_transformers.util.quantization import quantize_embeddings

from isoviz.posthoc import binary, quantisation
from isoviz.readouts.cosines import overlap
from isoviz.readouts.image import Image
from tests.posthoc.clouds import cloud

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("bits", [1, 2, 5, 8])
def test_numbers_become_the_nearest_of_the_values_by_a_loop(bits: int) -> None:
    train, others = cloud(80), cloud(30, seed=4) * 3
    image = quantisation(bits=bits).fit(train).transform(others)
    expected = np.empty_like(others)
    for i, dimension in enumerate(train.T):
        values = np.linspace(dimension.min(), dimension.max(), 2**bits)
        for row, number in enumerate(others[:, i]):
            expected[row, i] = values[np.abs(values - number).argmin()]
    np.testing.assert_allclose(image, expected, atol=1e-12)
    step = np.ptp(train, axis=0) / (2**bits - 1)
    assert (np.abs(quantisation(bits=bits).fit_transform(train) - train) <= step / 2 + 1e-12).all()


def test_binary_signs_are_the_bits_of_sentence_transformers() -> None:
    points = np.concatenate([RNG.normal(size=(40, 16)), np.zeros((1, 16))]).astype(np.float32)
    bits = np.unpackbits(quantize_embeddings(points, "ubinary"), axis=1)
    signs = np.asarray(binary().fit_transform(points))
    np.testing.assert_array_equal(signs, bits * 2.0 - 1.0)
    hamming = (bits[:, None] != bits[None]).sum(axis=2)
    np.testing.assert_allclose(Image(signs).cosines, 1 - 2 * hamming / 16, atol=1e-6)


def test_signs_of_an_uncentred_cloud_carry_nothing_unless_it_is_centred() -> None:
    centred = RNG.normal(size=(300, 32))
    kept = {
        (mean, centre): overlap(Image(centred), Image(binary(centre=centre).fit_transform(centred + mean))).value
        for mean in (0.0, 9.0)
        for centre in (False, True)
    }
    assert binary().fit(centred + 9.0).silent == 32 and binary(centre=True).fit(centred + 9.0).silent == 0
    assert kept[9.0, False] == pytest.approx(10 / 299, abs=1e-6)  # all rows are tied: chance
    assert kept[9.0, True] == pytest.approx(kept[0.0, False], abs=0.05) and kept[9.0, True] > 0.25
