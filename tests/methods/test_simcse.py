"""SimCSE against plain loops and sentence-transformers' loss, and what it makes of dropout."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from isoviz.errors import InputError
from isoviz.methods import get
from tests.methods.attaching import attached
from tests.methods.test_cloud_penalties import given
from tests.methods.test_conformance import built, made, sentences


def two_views(n=6, d=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    first = torch.randn(n, d, generator=generator)
    return first, first + 0.3 * torch.randn(n, d, generator=generator)


def term(first, second, **params):
    reps = replace(given(first), again=lambda: given(second))
    return attached("simcse", **params).penalties(reps)["simcse"]


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


def test_one_row_and_no_strength_give_nothing():
    first, second = two_views(n=1)
    assert float(term(first, second)) == 0
    assert attached("simcse", lam=0.0).penalties(given(first)) == {}  # the encoder does not run again


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
    model = built(tiny_models, made("simcse"), dropout=0.1).train()
    outputs, first, second = encoded(model, sentences())
    assert not torch.allclose(first, second)
    expected = 0.1 * loops(first.detach(), second.detach(), 0.05)
    assert float(outputs.terms["simcse"].detach()) == pytest.approx(expected, rel=1e-4)
    second.retain_grad(), first.retain_grad()
    outputs.loss.backward()
    assert first.grad.any() and second.grad.any()
    assert outputs.reps.again is None


def test_an_encoder_without_dropout_gives_equal_encodings_unless_a_rate_is_set(tiny_models):
    _, first, second = encoded(built(tiny_models, made("simcse")).train(), sentences())
    assert torch.equal(first, second)
    for family in ("bert", "bart"):
        model = built(tiny_models, made("simcse", dropout=0.2), kind="classification").train()
        _, first, second = encoded(model, sentences())
        assert not torch.allclose(first, second), family
    _, first, second = encoded(model.eval(), sentences())
    assert torch.equal(first, second)


def test_tasks_without_one_vector_per_row_are_refused():
    with pytest.raises(InputError) as caught:
        get("simcse").check_kind("span")
    assert caught.value.field == "method"
