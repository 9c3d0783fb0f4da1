from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from factory.corpus import sentences_of_validation
from factory.pretrain_bart import (
    KINDS,
    SEQ2SEQ,
    Ids,
    Recipe,
    batches,
    corpus,
    flat,
    infill,
    learning_rate,
    noised,
    pretrain,
)

SMALL = Recipe(
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
IDS = Ids(begin=0, pad=1, end=2, mask=4)


def test_the_text_is_deterministic_and_leaves_validation_rows_out() -> None:
    made = list(corpus(SMALL))
    assert made == list(corpus(SMALL))
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
        noisy, clean = noised("stories", text, SMALL, IDS.mask, rng)
        assert clean == text and len(noisy) == 3
    assert flat("stories", text, IDS) == [0, 10, 11, 12, 20, 21, 30, 31, 32, 33, 2]
    assert flat("two languages", text[:2], IDS) == [0, 10, 11, 12, 2, 20, 21, 2]


def test_batches_are_complete_epochs_within_the_budget() -> None:
    encoded = [("english", [list(range(10, 10 + size))]) for size in range(1, 61)]
    rng = np.random.default_rng(0)
    stream, seen = batches(encoded, SMALL, IDS, rng), 0
    while seen < 60:
        source, target = next(stream)
        assert target.size <= 2 * SMALL.batch_tokens and len(source) == len(target)
        seen += len(source)
    assert seen == 60


def test_the_rate_rises_falls_and_falls_faster_to_zero() -> None:
    rates = [learning_rate(step, Recipe()) for step in range(Recipe.steps + 1)]
    assert max(rates) == pytest.approx(1.0, abs=0.01) and rates[-1] == 0
    falls = -np.diff(rates[Recipe.warmup :])
    assert (falls > 0).all() and falls[-1] > falls[0]
    assert rates[Recipe.cool_from] == pytest.approx(rates[Recipe.cool_from - 1], abs=1e-3)


@pytest.mark.slow
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
    record = json.loads((tmp_path / "first" / "pretraining.json").read_text(encoding="utf-8"))
    assert record["curve"][-1]["held_out_stories"]["loss"] < np.log(SMALL.vocabulary)
