from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from factory.pretrain_bert import (
    Encoded,
    Recipe,
    Specials,
    batch,
    mask,
    new_model,
    pack,
    packed_states,
    pretrain,
    with_random_seconds,
)

SPECIALS = Specials(pad=0, cls=2, sep=3, mask=4, vocabulary=60)
SMALL = Recipe(
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
    model = new_model(SMALL, SPECIALS).eval()
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


def test_pretraining_learns_and_is_deterministic(tmp_path: Path) -> None:
    weights = []
    threads, algorithms = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    try:
        for name in ("first", "second"):
            pretrain(SMALL, tmp_path / name)
            weights.append((tmp_path / name / "model.safetensors").read_bytes())
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(algorithms)
    assert weights[0] == weights[1]
    curve = json.loads((tmp_path / "first" / "pretraining.json").read_text(encoding="utf-8"))["curve"]
    assert curve[-1]["held_out_word_loss"] < np.log(SMALL.vocabulary)
