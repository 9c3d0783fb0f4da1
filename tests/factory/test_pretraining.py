"""The pretraining of both bundled models on tiny recipes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from factory import pretrain_bart, pretrain_bert
from factory.corpus import sentences_of_validation
from factory.pretrain_bart import KINDS, SEQ2SEQ, corpus
from factory.pretrain_bert import Encoded, batch, new_model, pack, packed_states
from factory.pretraining import Specials, pretrain

SPECIALS = Specials(pad=0, cls=2, sep=3, mask=4, vocabulary=60)
BERT = pretrain_bert.Recipe(
    texts=260,
    held_out_texts=60,
    vocabulary=900,
    hidden=32,
    layers=2,
    heads=2,
    intermediate=48,
    rows=8,
    steps=30,
    warmup=5,
)
BART = pretrain_bart.Recipe(
    texts=300,
    held_out_texts=60,
    vocabulary=1200,
    hidden=32,
    heads=2,
    encoder_layers=1,
    intermediate=48,
    batch_tokens=256,
    steps=24,
    planned_steps=30,
    cool_from=20,
    warmup=4,
)


def some_texts(count: int) -> list[Encoded]:
    rng = np.random.default_rng(0)
    return [
        tuple([int(i) for i in rng.integers(5, 60, rng.integers(3, 9))] for _ in range(1 + number % 2))
        for number in range(count)
    ]


def test_a_packed_text_gets_the_vectors_it_gets_alone() -> None:
    torch.manual_seed(0)
    model = new_model(BERT, SPECIALS).eval()
    packed = batch(pack([(text, 0) for text in some_texts(20)], np.arange(20), 64, SPECIALS), 64, SPECIALS)
    with torch.no_grad():
        states = packed_states(model, packed, packed.ids)
        for row in range(len(packed.ids)):
            for number in range(1, int(packed.block[row].max()) + 1):
                columns = packed.block[row] == number
                ids, types = (torch.from_numpy(a[row, columns])[None] for a in (packed.ids, packed.types))
                alone = model.bert(input_ids=ids, token_type_ids=types).last_hidden_state[0]
                torch.testing.assert_close(states[row, columns], alone, atol=1e-5, rtol=1e-4)


def test_the_text_is_deterministic_and_leaves_validation_rows_out() -> None:
    made = list(corpus(BART))
    assert made == list(corpus(BART))
    assert {kind for kind, _ in made} == set(KINDS)
    excluded = sentences_of_validation(SEQ2SEQ)
    for _, sentences in made:
        assert excluded.isdisjoint([*sentences, " ".join(sentences)])


@pytest.mark.parametrize(("module", "recipe"), [(pretrain_bert, BERT), (pretrain_bart, BART)])
def test_pretraining_learns_and_is_deterministic(module: Any, recipe: Any, tmp_path: Path) -> None:
    weights = []
    threads, algorithms = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    try:
        for name in ("first", "second"):
            pretrain(recipe, tmp_path / name, module.prepare)
            weights.append((tmp_path / name / "model.safetensors").read_bytes())
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(algorithms)
    assert weights[0] == weights[1]
    curve = json.loads((tmp_path / "first" / "pretraining.json").read_text(encoding="utf-8"))["curve"]
    held_out = curve[-1]["held_out_word_loss"] if module is pretrain_bert else curve[-1]["held_out_stories"]["loss"]
    assert held_out < np.log(recipe.vocabulary)
