"""Every supported family gives, through the adapter, what the library's own model gives."""

from __future__ import annotations

import pytest
import torch

from isoviz.methods import get
from isoviz.methods.baseline import Baseline
from isoviz.methods.protocol import Params
from isoviz.models import sources
from isoviz.models.adapter import HeadedModel, load_network, load_tokenizer
from isoviz.models.families import CLASSIFIERS
from tests import tiny


def headed(folder, method="baseline", **params):
    source = sources.resolve(str(folder))
    kind = get(method)
    return HeadedModel(load_network(source, num_labels=2, seed=3), kind(kind.Params(**params)))


def batch_of(folder, texts=("w1 w2 w3", "w0 w4", "w5 w6 w7 w8 w9")):
    tokens = load_tokenizer(sources.resolve(str(folder)))(list(texts), padding=True, return_tensors="pt")
    return dict(tokens)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_logits_are_the_librarys_own(tiny_models, family):
    folder = tiny_models(family)
    model = headed(folder).eval()
    batch = batch_of(folder)
    with torch.no_grad():
        outputs = model(**batch)
        expected = model.network(**batch).logits
    torch.testing.assert_close(outputs.logits, expected)
    assert outputs.reps.last_hidden.shape == (3, batch["input_ids"].shape[1], 16)
    assert len(outputs.reps.hidden_states) == model.num_layers == 2
    assert outputs.reps.pooled.shape == (3, model.head_width)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_dropout_acts_between_method_and_output(tiny_models, family):
    model = headed(tiny_models(family, dropout=0.5))
    assert isinstance(model.dropout, torch.nn.Dropout)
    assert model.dropout.p == 0.5


def test_every_family_is_tested():
    assert set(tiny.FAMILIES) <= set(CLASSIFIERS)
    assert set(CLASSIFIERS) - set(tiny.FAMILIES) == {"xlm-roberta", "camembert"}  # RoBERTa's classes under other names


def test_new_weights_follow_the_seed_and_leave_the_global_generator_alone(tiny_models):
    source = sources.resolve(str(tiny_models("bert")))
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = load_network(source, 2, seed=1).classifier.weight
    second = load_network(source, 2, seed=1).classifier.weight
    third = load_network(source, 2, seed=2).classifier.weight
    assert torch.equal(first, second)
    assert not torch.equal(first, third)
    assert torch.equal(before, torch.get_rng_state())


def test_tokens_leave_padding_out(tiny_models):
    folder = tiny_models("bert")
    batch = batch_of(folder)
    with torch.no_grad():
        reps = headed(folder).eval()(**batch).reps
    kept = int(batch["attention_mask"].sum())
    assert reps.tokens().shape == (2 * kept, 16)
    assert reps.tokens([2]).shape == (kept, 16)
    assert reps.tokens(include_padding=True).shape == (2 * batch["attention_mask"].numel(), 16)


def test_labels_give_the_cross_entropy_and_named_terms(tiny_models):
    folder = tiny_models("bert")
    model = headed(folder, "cosreg", lam=2.0).eval()
    labels = torch.tensor([0, 1, 1])
    outputs = model(**batch_of(folder), labels=labels, penalise=True)
    assert set(outputs.terms) == {"task", "cosreg"}
    torch.testing.assert_close(outputs.terms["task"], torch.nn.functional.cross_entropy(outputs.logits, labels))
    torch.testing.assert_close(outputs.loss, outputs.terms["task"] + outputs.terms["cosreg"])
    assert set(model(**batch_of(folder), labels=labels).terms) == {"task"}


def test_default_hooks_change_nothing(tiny_models):
    model = headed(tiny_models("bert")).eval()
    assert isinstance(model.method, Baseline)
    assert Baseline(Params()).penalties(None) == {}
    with torch.no_grad():
        outputs = model(**batch_of(tiny_models("bert")))
    assert outputs.head is outputs.reps.pooled
