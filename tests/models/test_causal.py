"""Decoders with a head: vectors of rows in a batch against rows alone, echoes against doubled inputs, attention sinks left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from isoviz.errors import InputError
from isoviz.methods import get
from isoviz.models import sinks, sources
from isoviz.models.adapter import HeadedModel, load_network, load_tokenizer
from isoviz.models.extract import layer_views
from isoviz.models.families import CausalPooling
from isoviz.models.hooks import Hooks
from isoviz.models.profile import profile
from isoviz.models.sources import ModelSource
from isoviz.operations.measure import MeasureRequest, measure
from isoviz.runs import planning
from tests.models import readers

TEXTS = ("w1 w2 w3", "w0 w4", "w5 w6 w7 w8 w9", "w3")
CLOSE = {"rtol": 1e-4, "atol": 1e-5}
Made = Callable[[str], ModelSource]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """`made("GPT2")`: a small decoder with weights that are large enough for attention to matter."""
    import transformers

    folders: dict[str, Path] = {}

    def one(name: str) -> ModelSource:
        if name not in folders:
            folders[name] = folder = readers.make(name, tmp_path_factory.mktemp(name))
            network = getattr(transformers, f"{name}Model").from_pretrained(folder)
            with torch.no_grad():
                for parameter in network.parameters():
                    if parameter.ndim > 1:
                        parameter.normal_(std=0.3, generator=torch.Generator().manual_seed(parameter.numel()))
            network.save_pretrained(folder)
        return sources.resolve(str(folders[name]), "classification")

    return one


def headed(
    source: ModelSource, pooling: CausalPooling = "last", without_sinks: bool = False, kind: str = "classification"
) -> HeadedModel:
    network = load_network(source, 3, 0, kind)
    return HeadedModel(network, Hooks(), kind, pooling=pooling, without_sinks=without_sinks).eval()


def batch_of(made: Made, texts: tuple[str, ...] = TEXTS) -> tuple[dict[str, Tensor], list[Tensor]]:
    """The rows in one batch, padded, and the tokens (1, length) of each."""
    tokenizer = load_tokenizer(made("GPT2"))  # transformers insists on Qwen's own for its models
    assert tokenizer.pad_token_id == tokenizer.eos_token_id and len(tokenizer) <= 64  # no embedding was added
    batch = dict(tokenizer(list(texts), padding=True, return_tensors="pt"))
    return batch, [torch.tensor([tokenizer(text)["input_ids"]]) for text in texts]


@pytest.mark.parametrize("name", readers.TRAINED)
def test_scores_in_a_batch_are_the_librarys_own_of_each_row_alone(made: Made, name: str) -> None:
    source = made(name)
    model = headed(source)
    batch, alone = batch_of(made)
    with torch.no_grad():
        outputs = model(**batch)
        expected = torch.cat([model.network(input_ids=ids).logits for ids in alone])
        torch.testing.assert_close(outputs.logits, expected, **CLOSE)
        assert outputs.logits.std() > 0.01
        states = [model.network.base_model(input_ids=ids, output_hidden_states=True).hidden_states for ids in alone]
        for layer, hidden in enumerate(outputs.reps.hidden_states, start=1):
            tokens = torch.cat([rows[layer][0] for rows in states])
            torch.testing.assert_close(hidden[batch["attention_mask"].bool()], tokens, **CLOSE)
            torch.testing.assert_close(outputs.reps.tokens([layer]), tokens, **CLOSE)
            ends = torch.stack([rows[layer][0, -1] for rows in states])
            torch.testing.assert_close(outputs.reps.row_tokens(hidden), ends, **CLOSE)
        torch.testing.assert_close(outputs.reps.cls, outputs.reps.pooled)
        twice = model(**batch, token_type_ids=torch.ones_like(batch["input_ids"]))  # GPT-2 would add a word to each
        torch.testing.assert_close(twice.logits, outputs.logits)


@pytest.mark.parametrize("name", ["GPT2", "Llama"])
def test_an_echo_is_the_mean_of_the_second_of_two_occurrences(made: Made, name: str) -> None:
    source = made(name)
    batch, alone = batch_of(made)
    echo, mean = headed(source, "echo"), headed(source, "mean")
    with torch.no_grad():
        echoed, plain = echo(**batch), mean(**batch)
        for row, ids in enumerate(alone):
            length = ids.shape[1]
            once = mean.network.base_model(input_ids=ids).last_hidden_state[0]
            doubled = echo.network.base_model(input_ids=torch.cat([ids, ids], dim=1), output_hidden_states=True)
            second = doubled.last_hidden_state[0, length:]
            torch.testing.assert_close(plain.reps.pooled[row], once.mean(dim=0), **CLOSE)
            torch.testing.assert_close(echoed.reps.pooled[row], second.mean(dim=0), **CLOSE)
            for layer, hidden in enumerate(echoed.reps.hidden_states, start=1):
                torch.testing.assert_close(hidden[row, :length], doubled.hidden_states[layer][0, length:], **CLOSE)
        assert echoed.reps.hidden_states[0].shape == plain.reps.hidden_states[0].shape
        assert not torch.allclose(echoed.reps.pooled, plain.reps.pooled, atol=1e-2)
    changed = dict(batch, input_ids=batch["input_ids"].clone())
    changed["input_ids"][2, 4] = 9  # the last word is seen by the first token of the second occurrence only
    with torch.no_grad():
        moved = [
            model(**changed).reps.last_hidden[2, 0] - model(**batch).reps.last_hidden[2, 0] for model in (echo, mean)
        ]
    assert moved[0].norm() > 1e-3 and moved[1].norm() == 0


def test_the_unbiased_estimator_of_istar_reads_the_tokens_that_have_seen_their_row(made: Made) -> None:
    from isoviz.metrics import penalties

    source = made("GPT2")
    istar = get("istar")
    method = istar(istar.Params(lam=1.0, estimator="unbiased", layer=1))
    model = HeadedModel(load_network(source, 3, 0), method).eval()
    batch, alone = batch_of(made, tuple(" ".join(f"w{(row * k) % 40}" for k in range(1, 5)) for row in range(8)))
    with torch.no_grad():
        term = model(**batch, labels=torch.zeros(8, dtype=torch.long), penalise=True).terms["istar"]
        states = [model.network.base_model(input_ids=ids, output_hidden_states=True).hidden_states[1] for ids in alone]
    expected = penalties.istar_unbiased_penalty(torch.cat([state[:, -1] for state in states]))
    torch.testing.assert_close(term, expected)


def with_a_sink(made: Made) -> HeadedModel:
    """A GPT-2 whose first position is massive in one dimension, up to the last layer's norm."""
    model = headed(made("GPT2"), "mean", without_sinks=True)
    with torch.no_grad():
        model.network.base_model.wpe.weight[0, 3] = 400.0
    return model


def test_sinks_are_left_out_of_means_and_layers(made: Made) -> None:
    model = with_a_sink(made)
    batch, alone = batch_of(made)
    with torch.no_grad():
        reps = model(**batch).reps
        expected = []
        for ids in alone:
            hidden = model.network.base_model(input_ids=ids, output_hidden_states=True).hidden_states
            ratio = hidden[1][0].norm(dim=1) / hidden[1][0].norm(dim=1).median()
            assert ids.shape[1] == 1 or (ratio[0] > 10 and (ratio[1:] < 10).all())
            expected.append([state[0, 1:] if ids.shape[1] > 1 else state[0] for state in hidden])
    assert reps.sinks is not None and reps.sinks.tolist() == [1, 1, 1, 0]  # a row of one token keeps it
    torch.testing.assert_close(reps.pooled, torch.stack([states[-1].mean(dim=0) for states in expected]), **CLOSE)
    torch.testing.assert_close(reps.tokens([1]), torch.cat([states[1] for states in expected]), **CLOSE)
    torch.testing.assert_close(reps.cls, torch.stack([states[-1][-1] for states in expected]), **CLOSE)
    usual = headed(made("GPT2"), "mean", without_sinks=True)
    with torch.no_grad():
        assert usual(**batch).reps.sinks.tolist() == [0, 0, 0, 0]  # type: ignore[union-attr]


def test_a_token_is_a_sink_above_ten_times_the_median_of_its_own_row() -> None:
    norms = torch.tensor([[11.0, 1.0, 1.0, 0.0], [9.9, 1.0, 1.0, 99.0], [100.0, 2.0, 0.0, 0.0], [2.0, 1.0, 90.0, 1e3]])
    keep = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 0, 0], [1, 1, 1, 0]]).bool()
    states = [torch.ones(4, 4, 5), norms.unsqueeze(2) * torch.eye(5)[0]]
    found = sinks.mask(states, keep)
    assert found.tolist() == [[True, False, False, False], [False] * 4, [True, False, False, False], [False] * 4]


def test_clouds_without_sinks(made: Made, tmp_path: Path) -> None:
    model = with_a_sink(made)
    model.network.base_model.save_pretrained(tmp_path)
    load_tokenizer(made("GPT2")).save_pretrained(tmp_path)
    source = sources.resolve(str(tmp_path))
    texts = [" ".join(f"w{(row * 7 + k) % 40}" for k in range(2 + row % 5)) for row in range(30)]
    plain = layer_views(source, [texts])
    views, by_one = (
        layer_views(source, [texts], without_sinks=True, max_tokens_per_layer=50, batch_size=size) for size in (64, 1)
    )
    count = int(views.lengths.sum())
    assert views.sinks == by_one.sinks == f"30 of {count} tokens were left out as attention sinks"
    for layer in range(3):
        tokens, every = views.tokens[layer], plain.tokens[layer]
        first = np.r_[True, np.diff(every.groups) > 0]
        assert (tokens.stream.count, every.stream.count) == (count - 30, count)
        np.testing.assert_allclose(
            np.asarray(tokens.stream.mean), every.sample[~first].mean(axis=0), rtol=1e-4, atol=1e-5
        )
        assert 30 < len(tokens.sample) == len(tokens.groups) == len(tokens.ids) < 50
        rest = {row.tobytes() for row in every.sample[~first].round(3)}
        assert all(row.tobytes() in rest for row in np.concatenate([tokens.sample, tokens.one_per_row]).round(3))
        np.testing.assert_array_equal(plain.clouds[layer, "last"], views.clouds[layer, "last"])
        means = [every.sample[(every.groups == row) & ~first].mean(axis=0) for row in range(30)]
        np.testing.assert_allclose(views.clouds[layer, "mean"], means, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(by_one.tokens[layer].one_per_row, tokens.one_per_row, atol=1e-3)
    noted = {entry.pooling: entry.notes for entry in profile(views)}
    assert noted == {"last": (), "mean": (views.sinks,), "tokens": (views.sinks,)}
    assert plain.sinks == ""
    request = {"model": str(tmp_path), "max_eval": 10, "pooling": "tokens", "layer": 1}
    kept, reduced = (measure(MeasureRequest(**request, without_sinks=out)) for out in (False, True))
    assert reduced.headline.n == kept.headline.n - 10
    assert f"10 of {kept.headline.n} tokens were left out as attention sinks" in reduced.document["warnings"]
    with pytest.raises(InputError) as refused:
        measure(MeasureRequest(embeddings="vectors.npy", without_sinks=True))
    assert refused.value.field == "without_sinks"


def test_settings_of_decoders_are_resolved_or_refused(made: Made) -> None:
    def planned(model: str, task: str = "demo/acceptability", **settings: object) -> planning.RunConfig:
        (config,) = planning.expand([model], [task], [("baseline", {})], [0], **settings)
        return config

    gpt2 = str(Path(made("GPT2").location))
    config = planned(gpt2)
    assert (config.pooling, config.max_length) == ("last", 64)
    assert planned(gpt2, pooling="last").identity == config.identity
    echo = planned(gpt2, pooling="echo", without_sinks=True)
    assert echo.max_length == 32 and "--pooling echo --without-sinks" in planning.command([echo])
    assert planned("demo/tiny-bert").pooling == "auto" and "pooling" not in planned("demo/tiny-bert").setup_key()
    refused = (
        ("max_length", {"model": gpt2, "pooling": "echo", "max_length": 33}),
        ("pooling", {"model": "demo/tiny-bert", "pooling": "mean"}),
        ("without_sinks", {"model": "demo/tiny-bert", "without_sinks": True}),
        ("model", {"model": gpt2, "task": "demo/qa"}),
        ("lora_targets", {"model": gpt2, "lora_rank": 2, "lora_targets": "query"}),
    )
    for field, options in refused:
        with pytest.raises(InputError) as error:
            planned(**options)  # type: ignore[arg-type]
        assert error.value.field == field
    assert planned(gpt2, lora_rank=2, lora_targets="c_attn,c_fc").lora_rank == 2
