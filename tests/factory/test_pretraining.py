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
from factory.pretrain_bart import KINDS, SEQ2SEQ, batches, corpus, flat, infill, learning_rate, noised
from factory.pretrain_bert import Encoded, batch, mask, new_model, pack, packed_states, with_random_seconds
from factory.pretraining import Specials, pretrain

SPECIALS = Specials(pad=0, cls=2, sep=3, mask=4, vocabulary=60)
IDS = Specials(pad=1, cls=0, sep=2, mask=4, vocabulary=1200)
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


def test_packing_keeps_every_text_and_fills_rows() -> None:
    texts = [(text, 0) for text in some_texts(200)]
    rows = pack(texts, np.arange(200), 64, SPECIALS)
    assert sorted(map(str, (text for row in rows for text in row))) == sorted(map(str, texts))
    packed = batch(rows, 64, SPECIALS)
    assert (packed.block > 0).mean() > 0.9
    assert (packed.ids[packed.positions == 0][packed.block[packed.positions == 0] > 0] == SPECIALS.cls).all()


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


def test_masking_rates_and_untouched_specials() -> None:
    packed = batch(pack([(text, 0) for text in some_texts(3000)], np.arange(3000), 64, SPECIALS), 64, SPECIALS)
    masked, chosen = mask(packed, (0.15, 0.3), SPECIALS, np.random.default_rng(1))
    words = packed.ids > SPECIALS.mask
    assert not chosen[~words].any()
    assert chosen[words & (packed.types == 0)].mean() == pytest.approx(0.15, abs=0.01)
    assert chosen[words & (packed.types == 1)].mean() == pytest.approx(0.3, abs=0.01)
    assert (masked[chosen] == SPECIALS.mask).mean() == pytest.approx(0.8, abs=0.02)
    assert (masked[~chosen] == packed.ids[~chosen]).all()


def test_half_of_the_second_sentences_come_from_texts_of_the_same_kind() -> None:
    texts = some_texts(2000)
    kinds = ["even" if number % 4 == 1 else "odd" for number in range(2000)]
    seconds = {
        kind: {str(t[1]) for t, k in zip(texts, kinds, strict=True) if len(t) == 2 and k == kind} for kind in kinds
    }
    result = with_random_seconds(texts, kinds, np.random.default_rng(0))
    pairs = [(new, kind) for new, kind in zip(result, kinds, strict=True) if len(new[0]) == 2]
    assert np.mean([marked for (_, marked), _ in pairs]) == pytest.approx(0.5, abs=0.05)
    assert all(str(text[1]) in seconds[kind] for (text, _), kind in pairs)
    assert all(new[0] == old for new, old in zip(result, texts, strict=True) if not new[1])


def test_the_text_is_deterministic_and_leaves_validation_rows_out() -> None:
    made = list(corpus(BART))
    assert made == list(corpus(BART))
    assert {kind for kind, _ in made} == set(KINDS)
    excluded = sentences_of_validation(SEQ2SEQ)
    for _, sentences in made:
        assert excluded.isdisjoint([*sentences, " ".join(sentences)])


def test_infilling_drops_the_rate_in_spans_with_one_mask_each() -> None:
    rng = np.random.default_rng(0)
    tokens = list(range(10, 20_010))
    left = infill(tokens, 0.3, IDS.mask, 2.5, rng)
    unmasked = [token for token in left if token != IDS.mask]
    assert len(unmasked) / len(tokens) == pytest.approx(0.7, abs=0.03)
    assert unmasked == sorted(unmasked)
    spans = (len(tokens) - len(unmasked)) / (len(left) - len(unmasked))
    assert spans == pytest.approx(2.5, abs=0.2)


def test_the_target_is_the_text_as_it_was() -> None:
    rng = np.random.default_rng(0)
    text = [[10, 11, 12], [20, 21], [30, 31, 32, 33]]
    for _ in range(20):
        noisy, clean = noised("stories", text, BART, IDS.mask, rng)
        assert clean == text and len(noisy) == 3
    assert flat("stories", text, IDS) == [0, 10, 11, 12, 20, 21, 30, 31, 32, 33, 2]
    assert flat("two languages", text[:2], IDS) == [0, 10, 11, 12, 2, 20, 21, 2]


def test_batches_are_complete_epochs_within_the_budget() -> None:
    encoded = [("english", [list(range(10, 10 + size))]) for size in range(1, 61)]
    rng = np.random.default_rng(0)
    stream, seen = batches(encoded, BART, IDS, rng), 0
    while seen < 60:
        source, target = next(stream)
        assert target.size <= 2 * BART.batch_tokens and len(source) == len(target)
        seen += len(source)
    assert seen == 60


def test_the_rate_rises_falls_and_falls_faster_to_zero() -> None:
    rates = [learning_rate(step, pretrain_bart.Recipe()) for step in range(pretrain_bart.Recipe.steps + 1)]
    assert max(rates) == pytest.approx(1.0, abs=0.01) and rates[-1] == 0
    falls = -np.diff(rates[pretrain_bart.Recipe.warmup :])
    assert (falls > 0).all() and falls[-1] > falls[0]
    assert rates[pretrain_bart.Recipe.cool_from] == pytest.approx(rates[pretrain_bart.Recipe.cool_from - 1], abs=1e-3)


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
