"""Sentence-transformers folders: the vectors are those of the library, and what would run code is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from isoviz.errors import InputError, ModelError
from isoviz.models import sentences, sources
from isoviz.models.extract import encode, layer_views, usual_pooling
from tests.models import readers
from tests.models.sentence_folders import TEXTS, make

MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken", ("cls", "mean"))
AFTER: list[dict[str, Any]] = [
    {},
    {"dense": 8},
    {"layer_norm": True, "normalize": True},
    {"dense": 24, "normalize": True, "truncate": 6},
    {"prompts": {"query": "w1 w2 ", "other": "w30 "}, "default_prompt": "query", "include_prompt": False},
]


def own(folder: Path, **options: Any) -> NDArray[np.float32]:
    from sentence_transformers import SentenceTransformer

    points: NDArray[np.float32] = SentenceTransformer(str(folder), device="cpu", local_files_only=True).encode(
        TEXTS, show_progress_bar=False, **options
    )
    return points


def least_cosine(a: NDArray[Any], b: NDArray[Any]) -> float:
    a, b = a.astype(np.float64), b.astype(np.float64)
    return float(((a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)).min())


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("decoder", [False, True], ids=["bert", "llama padded on the left"])
def test_every_pooling_mode_is_the_librarys_own(mode, decoder, tmp_path, tiny_models):
    base = readers.make("Llama", tmp_path / "base") if decoder else tiny_models("bert")
    if decoder:  # a token for padding, which a decoder's own tokenizer often lacks
        readers.write_tokenizer(base, encoder=False, padded=True)
    folder = make(tmp_path / "model", base, pooling=mode, left=decoder)
    points = encode(str(folder), TEXTS)
    assert least_cosine(points, own(folder)) > 1 - 1e-5
    np.testing.assert_allclose(points, own(folder), atol=1e-5)
    assert points.shape[1] == (32 if isinstance(mode, tuple) else 16)


@pytest.mark.parametrize("after", AFTER, ids=lambda one: "-".join(one) or "nothing")
def test_the_modules_after_pooling_are_not_skipped(after, tmp_path, tiny_models):
    folder = make(tmp_path / "model", tiny_models("bert"), **after)
    points = encode(str(folder), TEXTS)
    assert least_cosine(points, own(folder)) > 1 - 1e-5
    bare = encode(str(folder), TEXTS, pooling="mean")
    skipped = points.shape == bare.shape and least_cosine(points, bare) > 1 - 1e-3
    assert skipped == (after == {})  # with a module or a prompt, the bare mean is another vector


def test_prompts_and_dimensions_can_be_chosen(tmp_path, tiny_models):
    folder = make(tmp_path / "model", tiny_models("bert"), prompts={"query": "w1 w2 ", "other": "w30 "})
    plain, queried = encode(str(folder), TEXTS), encode(str(folder), TEXTS, prompt="query")
    np.testing.assert_allclose(queried, own(folder, prompt_name="query"), atol=1e-6)
    assert np.abs(plain - queried).max() > 0.01
    np.testing.assert_array_equal(encode(str(folder), TEXTS, truncate=5), plain[:, :5])
    with pytest.raises(InputError, match=r"unknown prompt 'querry'; did you mean 'query'"):
        encode(str(folder), TEXTS, prompt="querry")
    with pytest.raises(InputError, match="truncate-dim: must be at least 1, at most 16"):
        encode(str(folder), TEXTS, truncate=17)
    with pytest.raises(InputError, match="prompt: only for pooling 'sentence'"):
        encode(str(folder), TEXTS, pooling="mean", prompt="query")


def test_sentence_is_the_usual_pooling_of_one_text_and_of_the_last_layer(tmp_path, tiny_models):
    folder = make(tmp_path / "model", tiny_models("bert"), dense=8)
    source = sources.resolve(str(folder))
    assert (usual_pooling(source), usual_pooling(source, columns=2)) == ("sentence", "cls")
    assert usual_pooling(sources.resolve("demo/tiny-bert")) == "cls"
    views = layer_views(source, [TEXTS], poolings="states")
    assert views.points(2, "sentence").shape == (len(TEXTS), 8)
    assert (1, "sentence") not in views.clouds and (1, "mean") in views.clouds
    with pytest.raises(InputError, match="pooling 'sentence' exists for the last layer"):
        layer_views(source, [TEXTS], poolings=["sentence"], layers=[1])
    described = sentences.describe(folder)
    assert described is not None and described.words == "Transformer → Pooling (mean) → Dense"


def _json(path: Path, change: Callable[[Any], Any]) -> None:
    content = json.loads(path.read_text())
    path.write_text(json.dumps(change(content)))


def _module(place: int, **changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        def edit(listing: list[dict[str, Any]]) -> list[dict[str, Any]]:
            listing[place] |= changes
            return listing

        _json(folder / "modules.json", edit)

    return change


def _pickled(folder: Path) -> None:
    import torch

    (folder / "2_Dense" / "model.safetensors").unlink()
    torch.save({}, folder / "2_Dense" / "pytorch_model.bin")


REFUSED: dict[str, tuple[Callable[[Path], None], str]] = {
    "own code": (_module(2, type="modeling.Own"), "needs its own code"),
    "unknown class": (_module(2, type="sentence_transformers.models.LSTM"), "class 'LSTM', which is not read here"),
    "path outside": (_module(2, path="../other"), "no folder such as '1_Pooling'"),
    "transformer elsewhere": (_module(0, path="0_Transformer"), "an old layout"),
    "no list": (lambda folder: (folder / "modules.json").write_text("7") and None, "cannot be read"),
    "no Pooling": (lambda folder: _json(folder / "modules.json", lambda all: all[:1]), "then a Pooling"),
    "pickled": (_pickled, "pickled weights are not read"),
    "activation": (
        lambda folder: _json(
            folder / "2_Dense" / "config.json", lambda one: one | {"activation_function": "os.system"}
        ),
        "activation 'os.system'",
    ),
    "other kind": (
        lambda folder: _json(
            folder / "config_sentence_transformers.json", lambda one: one | {"model_type": "CrossEncoder"}
        ),
        "is a CrossEncoder",
    ),
    "prompts": (
        lambda folder: _json(folder / "config_sentence_transformers.json", lambda one: one | {"prompts": ["x: "]}),
        "cannot be read",
    ),
    "tokenizer elsewhere": (
        lambda folder: _json(
            folder / "sentence_bert_config.json", lambda one: one | {"tokenizer_name_or_path": "/etc"}
        ),
        "names a tokenizer elsewhere",
    ),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_unsupported_model_folders_are_refused_in_one_line(fault, tmp_path, tiny_models):
    folder = make(tmp_path / "model", tiny_models("bert"), dense=8)
    damage, words = REFUSED[fault]
    damage(folder)
    with pytest.raises(ModelError) as raised:
        encode(str(folder), TEXTS)
    assert words in str(raised.value) and "\n" not in str(raised.value)
    views = layer_views(sources.resolve(str(folder)), [TEXTS], poolings=["mean"])  # still good as a bare transformer
    assert any("sentence vectors are not shown" in note for note in views.warnings)


def test_a_bare_adapter_is_refused(tmp_path, tiny_models):
    folder = make(tmp_path / "model", tiny_models("bert"))
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "/elsewhere"}')
    with pytest.raises(ModelError, match="is an adapter of another model; merge the two"):
        sources.resolve(str(folder))


def test_a_link_out_of_the_allowed_folders_is_refused(tmp_path, tiny_models, monkeypatch):
    from isoviz import allowed_paths

    folder = make(tmp_path / "allowed" / "model", tiny_models("bert"), dense=8)
    outside = tmp_path / "outside.json"
    (folder / "2_Dense" / "config.json").rename(outside)
    (folder / "2_Dense" / "config.json").symlink_to(outside)
    allowed_paths.restrict_to(lambda: allowed_paths.Roots((tmp_path / "allowed",)))
    with pytest.raises(ModelError, match="cannot be read from the browser"):
        sources.resolve(str(folder))
