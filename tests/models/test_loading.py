"""A checkpoint that does not fit its own model is refused, unless the caller allows random weights."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from isoviz.errors import ModelError
from isoviz.models import sources
from isoviz.models.adapter import load_network
from isoviz.models.extract import layer_views
from isoviz.tasks.protocol import HeadKind
from tests.tiny import FAMILIES, LATER, LATER_WRITERS, TWO_SIDED, WRITERS, TinyModels

Rename = Callable[[str], str | None]


def with_weights(folder: Path, target: Path, rename: Rename) -> sources.ModelSource:
    """A copy of a model whose tensors are renamed, or left out where `rename` gives None."""
    shutil.copytree(folder, target)
    weights = {rename(name): tensor for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file({name: t for name, t in weights.items() if name}, target / "model.safetensors", {"format": "pt"})
    return sources.resolve(str(target))


def with_config(folder: Path, target: Path, **changes: object) -> sources.ModelSource:
    shutil.copytree(folder, target)
    config = json.loads((target / "config.json").read_text())
    (target / "config.json").write_text(json.dumps({**config, **changes}))
    return sources.resolve(str(target))


@pytest.mark.parametrize("family", ["bert", "distilbert", "modernbert"])
def test_renamed_tensors_are_refused_by_training_and_by_reading(
    tiny_models: TinyModels, tmp_path: Path, family: str
) -> None:
    source = with_weights(tiny_models(family), tmp_path / "renamed", lambda name: f"other.{name}")
    total = len(load_file(tiny_models(family) / "model.safetensors"))
    for read in (lambda: load_network(source, 2, 0), lambda: layer_views(source, [["w1 w2"]])):
        with pytest.raises(
            ModelError, match=r"\d+ encoder weights are missing from the checkpoint \(.*, …\)"
        ) as caught:
            read()
        assert caught.value.field == "model" and "--allow-random" in str(caught.value.advice)
        assert abs(int(str(caught.value).split(" encoder weights")[0].split()[-1]) - total) <= 2  # but for a pooler


def test_missing_and_unused_layers_are_refused(tiny_models: TinyModels, tmp_path: Path) -> None:
    layers = json.loads((tiny_models("bert") / "config.json").read_text())["num_hidden_layers"]
    deeper = with_config(tiny_models("bert"), tmp_path / "deeper", num_hidden_layers=layers + 2)
    with pytest.raises(ModelError, match=rf"are missing from the checkpoint \(.*layer\.{layers}\."):
        load_network(deeper, 2, 0)
    shallower = with_config(tiny_models("bert"), tmp_path / "shallower", num_hidden_layers=layers - 1)
    with pytest.raises(ModelError, match=rf"of the checkpoint are not used \(.*layer\.{layers - 1}\."):
        load_network(shallower, 2, 0)


def test_allowed_random_weights_are_named_in_what_is_read(tiny_models: TinyModels, tmp_path: Path) -> None:
    source = with_weights(
        tiny_models("bert"), tmp_path / "x", lambda name: None if "layer.0.output.dense.weight" in name else name
    )
    assert load_network(source, 2, 0, allow_random=True)
    (note,) = layer_views(source, [["w1 w2"]], poolings="states", allow_random=True).warnings
    assert note.startswith("random weights: 1 encoder weight is missing from the checkpoint (encoder.layer.0")


KINDS: list[tuple[str, HeadKind]] = [
    *((family, "classification") for family in (*FAMILIES, *LATER, *TWO_SIDED)),
    *((family, "span") for family in (*FAMILIES, *LATER, *TWO_SIDED)),
    *((family, "seq2seq") for family in (*WRITERS, *LATER_WRITERS)),
]


@pytest.mark.parametrize(("family", "kind"), KINDS)
def test_a_new_head_is_no_fault(tiny_models: TinyModels, family: str, kind: HeadKind) -> None:
    assert load_network(sources.resolve(str(tiny_models(family))), 3, 0, kind)


def test_a_missing_pooler_and_a_language_model_head_are_no_fault(tiny_models: TinyModels, tmp_path: Path) -> None:
    import transformers

    bert = transformers.AutoModelForMaskedLM.from_pretrained(tiny_models("bert"))
    shutil.copytree(tiny_models("bert"), tmp_path / "mlm")
    bert.save_pretrained(tmp_path / "mlm")
    source = sources.resolve(str(tmp_path / "mlm"))
    assert any(name.startswith("cls.") for name in load_file(tmp_path / "mlm" / "model.safetensors"))
    assert load_network(source, 2, 0)
    assert layer_views(source, [["w1 w2"]], poolings="states").warnings == ()
