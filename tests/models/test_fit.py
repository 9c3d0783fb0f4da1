"""A checkpoint is compared with its configuration before anything starts: names and shapes, of every family that can be trained."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from isoviz.errors import ModelError
from isoviz.models import adapter, sources
from isoviz.models.adapter import load_network
from isoviz.models.families import families_of
from isoviz.models.loading import load_bare
from isoviz.models.sources import ModelSource
from isoviz.tasks.protocol import HeadKind
from tests.tiny import FAMILIES, LATER, LATER_WRITERS, TWO_SIDED, WRITERS

Rename = Callable[[str], str | None]
CLASSIFIERS = (*FAMILIES, *LATER, *TWO_SIDED)
KINDS: list[tuple[str, HeadKind]] = [
    *((family, "classification") for family in CLASSIFIERS),
    *((family, "seq2seq") for family in (*WRITERS, *LATER_WRITERS)),
]


def tensors(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def rewritten(folder: Path, target: Path, rename: Rename) -> ModelSource:
    """A copy whose tensors are renamed, or left out where `rename` gives None."""
    shutil.copytree(folder, target)
    renamed = {new: tensor for name, tensor in tensors(folder).items() if (new := rename(name))}
    save_file(renamed, target / "model.safetensors", {"format": "pt"})
    return sources.resolve(str(target))


def configured(folder: Path, target: Path, **changes: object) -> ModelSource:
    shutil.copytree(folder, target)
    config = json.loads((target / "config.json").read_text())
    (target / "config.json").write_text(json.dumps({**config, **changes}))
    return sources.resolve(str(target))


@pytest.mark.parametrize(("family", "kind"), KINDS)
def test_every_family_fits_as_it_is_saved_and_not_with_its_tensors_renamed(tiny_models, tmp_path, family, kind):
    folder = tiny_models(family)
    adapter.require_fit(sources.resolve(str(folder)), kind)
    load_bare(sources.resolve(str(folder)))
    renamed = rewritten(folder, tmp_path / "renamed", lambda name: f"other.{name}")
    for requested in (lambda: adapter.require_fit(renamed, kind), lambda: load_bare(renamed)):
        with pytest.raises(
            ModelError, match=r"\d+ encoder weights are missing from the checkpoint \(.*, …\)"
        ) as caught:
            requested()
        assert caught.value.field == "model" and "\n" not in str(caught.value)


def test_tensors_of_unused_layers_and_of_another_width_are_refused(tiny_models, tmp_path):
    shallower = configured(tiny_models("bert"), tmp_path / "shallower", num_hidden_layers=1)
    with pytest.raises(ModelError, match=r"16 encoder weights of the checkpoint are not used \(encoder\.layer\.1\."):
        load_bare(shallower)
    wider = configured(tiny_models("bert"), tmp_path / "wider", hidden_size=32)
    with pytest.raises(ModelError, match=r"\d+ encoder weights of the checkpoint are of another shape"):
        adapter.require_fit(wider, "classification")
    with pytest.raises(ModelError, match="of another shape"):
        load_network(wider, 2, 0)
    assert load_network(wider, 2, 0, allow_random=True).config.hidden_size == 32


@pytest.mark.parametrize("family", CLASSIFIERS)
def test_a_checkpoint_with_a_task_head_serves_its_encoder(tiny_models, tmp_path, family):
    import transformers

    folder = tmp_path / "classifier"
    shutil.copytree(tiny_models(family), folder)
    trained = transformers.AutoModelForSequenceClassification.from_pretrained(tiny_models(family), num_labels=3)
    trained.save_pretrained(folder)
    source = sources.resolve(str(folder))
    load_bare(source)
    for kind in ("classification", "regression", "span"):
        assert family in families_of(kind)
        adapter.require_fit(source, kind)
    again = load_network(source, 5, 0)  # the head has three classes: reinitialised for five
    assert again.config.num_labels == 5
    expected, got = (
        {name: value for name, value in network.base_model.state_dict().items() if "qa_outputs" not in name}
        for network in (trained, again)
    )
    body = [name for name in expected if not name.startswith(("classification_head", "classifier", "score"))]
    assert body and all(torch.equal(expected[name], got[name]) for name in body)


@pytest.mark.parametrize("family", ["bert", "roberta", "albert", "electra", "bart", "t5"])
def test_tied_weights_are_stored_once_and_nothing_is_missing(tiny_models, tmp_path, family):
    import transformers

    auto = transformers.AutoModelForSeq2SeqLM if family in ("bart", "t5") else transformers.AutoModelForMaskedLM
    folder = tmp_path / "tied"
    shutil.copytree(tiny_models(family), folder)
    network = auto.from_pretrained(tiny_models(family))
    network.save_pretrained(folder)
    assert len(tensors(folder)) < len(network.state_dict())
    adapter.require_fit(sources.resolve(str(folder)), "classification")
    load_bare(sources.resolve(str(folder)))


def test_bundled_models_fit_their_checkpoints():
    for name in sources.bundled():
        bundled = sources.resolve(name)
        as_local = ModelSource(name, "local", bundled.location, bundled.fingerprint)
        load_bare(as_local)
        adapter.require_fit(as_local, "classification")
