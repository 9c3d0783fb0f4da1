"""A network saved with the method folded into its output layer gives, in transformers alone, the scores of the whole model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from isoviz import methods
from isoviz.errors import InputError
from isoviz.methods.composition import changes_input
from isoviz.models import sources
from isoviz.models.adapter import HeadedModel, class_for, load_network
from isoviz.models.folding import fold, save
from tests import tiny
from tests.models.test_adapter import batch_of, targets_of

AFFINE = sorted(set(methods.catalogue()) - {"flow"})


def used(folder: Path, slug: str, kind: Any) -> HeadedModel:
    """A model whose method has seen training batches, and whose learnt layer, if it has one, is far from the identity."""
    method = methods.get(slug)
    network = load_network(sources.resolve(str(folder)), num_labels=2, seed=3, kind=kind)
    model = HeadedModel(network, method(method.Params()), kind)
    model.train()
    for words in (("w1 w2 w3", "w0 w4"), ("w5 w6 w7", "w8 w9 w1"), ("w2 w7", "w3 w1 w0")):
        written = {"labels": targets_of(folder, words[::-1])} if kind == "seq2seq" else {}
        with torch.no_grad():
            model(**batch_of(folder, words), **written)
    if slug in ("isolayer", "flow") and model.method_state is not None:
        with torch.no_grad():
            for parameter in model.method_state.parameters():
                parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0)))
    return model.eval()


def scores(model: Any, batch: dict[str, Any]) -> torch.Tensor:
    with torch.no_grad():
        outputs = model(**batch)
    if hasattr(outputs, "start_logits"):
        return torch.stack([outputs.start_logits, outputs.end_logits], dim=-1)
    logits: torch.Tensor = outputs.logits
    return logits


def saved_alone(model: HeadedModel, folder: Path) -> Any:
    save(model, folder)
    return class_for(model.network.config, model.kind, 2)[0].from_pretrained(folder).eval()


@pytest.mark.parametrize("slug", AFFINE)
def test_every_affine_method(slug: str, tiny_models: tiny.TinyModels, tmp_path: Path) -> None:
    folder = tiny_models("bert")
    model = used(folder, slug, "classification")
    batch = batch_of(folder)
    expected, without = scores(model, batch), scores(model.network, batch)
    if changes_input(methods.get(slug)):
        assert (expected - without).abs().max() > 1e-4  # there is something to fold
    torch.testing.assert_close(scores(saved_alone(model, tmp_path), batch), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        *(("roberta", kind) for kind in ("classification", "regression", "span")),
        *((family, "classification") for family in ("distilbert", "deberta-v2", "modernbert", "bart")),
        *((family, "seq2seq") for family in ("bart", "marian")),
    ],
)
def test_every_kind_of_output_layer(family: str, kind: Any, tiny_models: tiny.TinyModels, tmp_path: Path) -> None:
    folder = tiny_models(family)
    model = used(folder, "batchnorm", kind)
    batch = batch_of(folder)
    if kind == "seq2seq":
        batch |= {"labels": targets_of(folder)}
    expected = scores(model, batch)
    folded_scores = scores(saved_alone(model, tmp_path), batch)
    if kind == "seq2seq":
        folded_scores = folded_scores[batch["labels"] != -100]
    if kind == "span":
        keep = batch["attention_mask"].bool()
        expected, folded_scores = expected[keep], folded_scores[keep]
    torch.testing.assert_close(folded_scores, expected, atol=1e-4, rtol=1e-4)


def test_t5_has_room_for_a_scale_and_none_for_a_shift(tiny_models: tiny.TinyModels, tmp_path: Path) -> None:
    folder = tiny_models("t5")
    batch = batch_of(folder) | {"labels": targets_of(folder)}
    model = used(folder, "isobn", "seq2seq")
    expected = scores(model, batch)
    folded_scores = scores(saved_alone(model, tmp_path), batch)[batch["labels"] != -100]
    torch.testing.assert_close(folded_scores, expected, atol=1e-4, rtol=1e-4)
    with pytest.raises(InputError, match="no bias for the method's shift"):
        fold(used(folder, "batchnorm", "seq2seq"))


def test_flow_is_refused(tiny_models: tiny.TinyModels) -> None:
    model = used(tiny_models("bert"), "flow", "classification")
    before = model.output.weight.clone()
    with pytest.raises(InputError, match="not affine"):
        fold(model)
    assert torch.equal(model.output.weight, before)
