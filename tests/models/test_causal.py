"""Decoders with a head: vectors of rows in a batch against rows alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from isoviz.errors import InputError
from isoviz.methods import get
from isoviz.models import sources
from isoviz.models.adapter import HeadedModel, load_network, load_tokenizer
from isoviz.models.families import CausalPooling
from isoviz.models.hooks import Hooks
from isoviz.models.sources import ModelSource
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


def headed(source: ModelSource, pooling: CausalPooling = "last", kind: str = "classification") -> HeadedModel:
    network = load_network(source, 3, 0, kind)
    return HeadedModel(network, Hooks(), kind, pooling=pooling).eval()


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


def test_settings_of_decoders_are_resolved_or_refused(made: Made) -> None:
    def planned(model: str, task: str = "demo/acceptability", **settings: object) -> planning.RunConfig:
        (config,) = planning.expand([model], [task], [("baseline", {})], [0], **settings)
        return config

    gpt2 = str(Path(made("GPT2").location))
    config = planned(gpt2)
    assert (config.pooling, config.max_length) == ("last", 64)
    assert planned(gpt2, pooling="last").identity == config.identity
    assert "--pooling mean" in planning.command([planned(gpt2, pooling="mean")])
    assert planned("demo/tiny-bert").pooling == "auto" and "pooling" not in planned("demo/tiny-bert").setup_key()
    refused = (
        ("max_length", {"model": gpt2, "max_length": 65}),
        ("pooling", {"model": "demo/tiny-bert", "pooling": "mean"}),
        ("model", {"model": gpt2, "task": "demo/qa"}),
    )
    for field, options in refused:
        with pytest.raises(InputError) as error:
            planned(**options)  # type: ignore[arg-type]
        assert error.value.field == field
