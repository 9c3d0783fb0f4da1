"""SimCSE against plain loops and sentence-transformers' loss, and what it makes of dropout."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from isoviz.metrics import alignment
from tests.methods.attaching import attached
from tests.methods.test_cloud_penalties import given
from tests.methods.test_conformance import built, made, sentences


def two_views(n=6, d=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    first = torch.randn(n, d, generator=generator)
    return first, first + 0.3 * torch.randn(n, d, generator=generator)


def terms(first, second, **params):
    reps = replace(given(first), again=lambda: given(second))
    return attached("simcse", **params).penalties(reps)


def term(first, second, **params):
    return sum(terms(first, second, **params).values())


def loops(first, second, temperature):
    """Equation 4, row by row."""
    first, second = first.double().numpy(), second.double().numpy()
    losses = []
    for i, h in enumerate(first):
        powers = [math.exp(h @ g / np.sqrt((h @ h) * (g @ g)) / temperature) for g in second]
        losses.append(-math.log(powers[i] / sum(powers)))
    return np.mean(losses)


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_term_is_the_loops(temperature):
    first, second = two_views()
    expected = 0.7 * loops(first, second, temperature)
    assert float(term(first, second, lam=0.7, temperature=temperature)) == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_it_is_the_loss_of_sentence_transformers():
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    first, second = two_views(seed=1)
    peer = MultipleNegativesRankingLoss(None, scale=20.0).compute_loss_from_embeddings([first, second], None)
    assert float(term(first, second, lam=1.0)) == pytest.approx(float(peer), abs=1e-6)


def test_its_parts_are_alignment_and_uniformity():
    first, second = two_views(n=7)
    parts = terms(first, second, lam=0.5, temperature=0.2)
    assert float(parts["simcse alignment"]) == pytest.approx(
        0.5 * float(alignment(first, second)) / (2 * 0.2), rel=1e-5
    )
    equal = terms(first, first, lam=1.0)
    assert float(equal["simcse alignment"]) == pytest.approx(0, abs=1e-5)
    together = torch.ones(7, 5)
    assert float(terms(together, together, lam=1.0)["simcse uniformity"]) == pytest.approx(math.log(7), abs=1e-4)
    apart = 7 * torch.eye(7)  # orthogonal rows: only a row's own second encoding counts
    assert float(terms(apart, apart, lam=1.0)["simcse uniformity"]) == pytest.approx(0, abs=1e-6)


def encoded(model, batch):
    """The term and both encodings of a batch in training."""
    seen = []
    encode = model.wiring.encode
    model.wiring.encode = lambda inputs: seen.append(encode(inputs)) or seen[-1]
    outputs = model(**batch, penalise=True)
    model.wiring.encode = encode
    first, second = (encoding.pooled for encoding in seen)
    return outputs, first, second


def test_the_encoder_runs_again_with_other_masks(tiny_models):
    model = built(tiny_models, made("simcse", lam=0.1), dropout=0.1).train()
    outputs, first, second = encoded(model, sentences())
    assert not torch.allclose(first, second)
    expected = 0.1 * loops(first.detach(), second.detach(), 0.05)
    reported = {name: float(term.detach()) for name, term in outputs.terms.items() if name != "task"}
    assert sum(reported.values()) == pytest.approx(expected, rel=1e-4)
    assert reported["simcse alignment"] == pytest.approx(float(alignment(first.detach(), second.detach())), rel=1e-4)
    second.retain_grad(), first.retain_grad()
    outputs.loss.backward()
    assert first.grad.any() and second.grad.any()
    assert outputs.reps.again is None
