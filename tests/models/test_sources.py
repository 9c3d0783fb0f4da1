"""Finding models: what is found says where, what is not says what is allowed."""

from __future__ import annotations

import json
import shutil

import pytest

from isoviz.errors import ModelError
from isoviz.models import sources


def test_bundled():
    source = sources.resolve("demo/tiny-bert")
    assert source.kind == "bundled"
    assert len(source.fingerprint) == 16


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


def test_hub_id_without_a_network_says_so():
    with pytest.raises(ModelError, match="cannot be reached"):
        sources.resolve("some-org/some-model")


def test_not_a_hub_id():
    with pytest.raises(ModelError, match="neither a directory nor a hub id"):
        sources.resolve("what?*")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: (d / "config.json").unlink(), "no config.json"),
        (lambda d: (d / "config.json").write_text("{"), "not valid JSON"),
        (lambda d: (d / "config.json").write_text('{"model_type": "gpt2"}'), "family 'gpt2'"),
        (lambda d: (d / "model.safetensors").unlink(), "no model.safetensors"),
        (lambda d: (d / "tokenizer.json").unlink(), "no tokenizer"),
    ],
)
def test_directories_that_are_no_model(tiny_models, tmp_path, damage, message):
    copy = shutil.copytree(tiny_models("bert"), tmp_path / "copy")
    damage(copy)
    with pytest.raises(ModelError, match=message):
        sources.resolve(str(copy))
