"""Models that do not fit: weights on disk give the same clouds; states are pooled layer by layer; refusals name what would fit."""

from __future__ import annotations

import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from isoviz import devices
from isoviz.errors import InputError, ModelError
from isoviz.models import checkpoint, encoder, extract, placing, sources
from isoviz.models.sources import ModelSource
from tests.models import readers

TEXTS = ["w1 w2 w3 w4", "w5", "w6 w7 w8", "w9 w1 w1 w2 w5"]
DEEP = 40


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> ModelSource:
    folder = readers.make("Llama", tmp_path_factory.mktemp("deep"), num_hidden_layers=DEEP)
    return sources.resolve(str(folder))


def views(source: ModelSource, **options: Any) -> Any:
    settings: dict[str, Any] = {"poolings": ["last", "mean", "tokens"], "batch_size": 2} | options
    return extract.layer_views(source, [TEXTS], **settings)


def assert_same(first: Any, second: Any, **close: float) -> None:
    assert first.clouds.keys() == second.clouds.keys() and first.tokens.keys() == second.tokens.keys()
    for key, cloud in first.clouds.items():
        np.testing.assert_allclose(second.clouds[key], cloud, **close)
    for layer, tokens in first.tokens.items():
        np.testing.assert_allclose(second.tokens[layer].sample, tokens.sample, **close)


def test_only_one_layers_states_are_alive_at_a_time(deep: ModelSource, monkeypatch: pytest.MonkeyPatch) -> None:
    """Peak: of the 41 states of a batch at most those of two layers, the one that is read and the one that is being computed."""
    alive: list[weakref.ref[Tensor]] = []
    most, seen = 0, []
    watched = encoder.Encoder.each_layer

    def spied(self: encoder.Encoder, batch: dict[str, Tensor], visit: Any) -> Any:
        def count(layer: int, state: Tensor) -> None:
            nonlocal most
            alive.append(weakref.ref(state))
            most = max(most, sum(ref() is not None for ref in alive))
            seen.append(layer)
            visit(layer, state)

        return watched(self, batch, count)

    whole = views(deep)
    monkeypatch.setattr(encoder.Encoder, "each_layer", spied)
    assert_same(whole, views(deep), atol=0)
    assert seen == [*range(DEEP + 1)] * 2
    assert most <= 2


def test_layers_one_by_one_are_those_of_a_whole_pass(deep: ModelSource, monkeypatch: pytest.MonkeyPatch) -> None:
    streamed = views(deep)
    loaded = encoder.load(deep)
    assert loaded.blocks is not None and len(loaded.blocks) == DEEP
    monkeypatch.setattr(
        encoder.Encoder, "blocks", property(lambda self: None, lambda self, blocks: None), raising=False
    )
    assert_same(streamed, views(deep), atol=0)


def limited(monkeypatch: pytest.MonkeyPatch, memory: int, disk: int = 2**30) -> None:
    monkeypatch.setattr(devices, "room", lambda: {"cpu": memory})
    monkeypatch.setattr(placing.shutil, "disk_usage", lambda folder: SimpleNamespace(free=disk))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_weights_on_disk_give_the_same_clouds(deep: ModelSource, monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    plain = views(deep, dtype=dtype)
    needed = checkpoint.parameters(deep) * (4 if dtype == "float32" else 2)
    limited(monkeypatch, needed // 2)
    folders: list[Path] = []
    told: list[str] = []
    load = encoder.load

    def watched(*arguments: Any, **options: Any) -> Any:
        folders.append(Path(options["offload_folder"]))
        loaded = load(*arguments, **options)
        assert "disk" in loaded.module.hf_device_map.values()
        return loaded

    monkeypatch.setattr(encoder, "load", watched)
    spread = views(deep, dtype=dtype, progress=lambda done, total, words: told.append(words))
    assert_same(plain, spread, atol=1e-6)
    assert any("read from disk for each batch" in note for note in spread.warnings)
    assert any("do not fit" in words for words in told)  # before the first row is read
    assert not folders[0].exists()

    def stop(done: int, total: int, words: str) -> None:
        if words == "reading texts":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        views(deep, dtype=dtype, progress=stop)
    assert not folders[1].exists()


def test_a_refusal_names_what_would_fit(deep: ModelSource, monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, 1000, disk=1000)
    with pytest.raises(
        ModelError, match=r"in float32, and here .* are free; bfloat16 needs .* billion weights"
    ) as refused:
        views(deep)
    assert refused.value.field == "model" and "\n" not in str(refused.value)
    with pytest.raises(InputError, match="dtype: expected auto, float32, bfloat16, float16"):
        views(deep, dtype="int8")


def test_auto_takes_what_is_stored_on_an_accelerator_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = readers.make("Llama", tmp_path)
    import transformers

    transformers.LlamaModel.from_pretrained(folder, dtype=torch.bfloat16).save_pretrained(folder)
    source = sources.resolve(str(folder))
    assert checkpoint.parameters(source) == sum(
        tensor.numel() for tensor in load_file(folder / "model.safetensors").values()
    )
    with placing.placed(source) as place:
        assert place.dtype == torch.float32
    monkeypatch.setattr(devices, "freest", lambda: torch.device("cuda", 1))
    monkeypatch.setattr(devices, "room", lambda: {0: 0, 1: 2**30, "cpu": 2**30})
    for wanted, expected in (("auto", torch.bfloat16), ("float32", torch.float32), ("float16", torch.float16)):
        with placing.placed(source, wanted) as place:  # type: ignore[arg-type]
            assert (place.dtype, place.spread, place.device.index) == (expected, False, 1)
    monkeypatch.setattr(devices, "room", lambda: {0: 10_000, 1: 10_000, "cpu": 2**30})
    with placing.placed(source) as place:
        assert place.spread and place.options["max_memory"] == {0: 8_000, 1: 8_000, "cpu": int(0.8 * 2**30)}
