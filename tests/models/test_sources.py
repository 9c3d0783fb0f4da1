"""Finding models: results name their source, errors name the allowed forms."""

from __future__ import annotations

import json
import shutil

import pytest

from isoviz.errors import ModelError
from isoviz.models import sources


def test_local_directory_and_its_fingerprint(tiny_models, tmp_path):
    copy = shutil.copytree(tiny_models("bert"), tmp_path / "copy")
    source = sources.resolve(str(copy))
    assert source.kind == "local"
    assert source.fingerprint == sources.resolve(str(tiny_models("bert"))).fingerprint
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "layer_norm_eps": 0.1}))
    assert sources.resolve(str(copy)).fingerprint != source.fingerprint


@pytest.mark.parametrize(("family", "tokens"), [("bert", 64), ("roberta", 62)])
def test_longest_input(tiny_models, family, tokens):
    assert sources.longest_input(sources.resolve(str(tiny_models(family)))) == tokens


@pytest.mark.parametrize("name", ["demo/tiny-brt", "/no/such/folder", "./nothing", "a/b/c", " "])
def test_names_that_are_nothing_list_what_is_allowed(name):
    with pytest.raises(ModelError, match="demo/tiny-bert") as caught:
        sources.resolve(name)
    assert caught.value.field == "model"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: (d / "config.json").unlink(), "no config.json"),
        (lambda d: (d / "config.json").write_text("{"), "not valid JSON"),
        (lambda d: (d / "config.json").write_text("{}"), "no model_type"),
        (lambda d: (d / "model.safetensors").unlink(), r"no model.safetensors \(its weights are missing"),
        (lambda d: (d / "model.safetensors").rename(d / "pytorch_model.bin"), "pickled weights are not read"),
        (lambda d: (d / "model.safetensors").rename(d / "model-00002-of-00003.safetensors"), "no model-00001-of-00003"),
        (lambda d: (d / "tokenizer.json").unlink(), "no tokenizer"),
    ],
)
def test_directories_that_are_no_model(tiny_models, tmp_path, damage, message):
    copy = shutil.copytree(tiny_models("bert"), tmp_path / "copy")
    damage(copy)
    with pytest.raises(ModelError, match=message):
        sources.resolve(str(copy))


def test_a_model_in_parts_is_one_model(tiny_models, tmp_path):
    copy = shutil.copytree(tiny_models("bert"), tmp_path / "copy")
    resolved = sources.resolve(str(copy))
    (copy / "model.safetensors").rename(copy / "model-00001-of-00002.safetensors")
    (copy / "model-00002-of-00002.safetensors").write_bytes(b"")
    assert sources.resolve(str(copy)).size == resolved.size


@pytest.mark.parametrize(
    ("config", "head", "message"),
    [
        ({"model_type": "bloom"}, "classification", None),
        ({"model_type": "bloom"}, "seq2seq", "not for seq2seq .families that can: bart, marian, mbart, t5"),
        (
            {"model_type": "bert"},
            "seq2seq",
            "can be fine-tuned for classification, regression, span, embedding, not for seq2seq",
        ),
        ({"model_type": "bart"}, "classification", None),
        ({"model_type": "gemma3", "text_config": {"model_type": "x"}}, "classification", "joins several networks"),
    ],
)
def test_which_head_a_family_can_have(tiny_models, tmp_path, config, head, message):
    copy = shutil.copytree(tiny_models("bert"), tmp_path / "copy")
    (copy / "config.json").write_text(json.dumps(config))
    assert sources.resolve(str(copy)).kind == "local"  # without a head there is nothing against it
    if message is None:
        assert sources.resolve(str(copy), head).kind == "local"
        return
    with pytest.raises(ModelError, match=message) as caught:
        sources.resolve(str(copy), head)
    assert caught.value.field == "model"
