"""MNLI's mismatched genres: scored beside the matched ones after each epoch, and in no point cloud."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import accuracy_score

from isoviz.training.loop import _Run
from tests.tiny import WORDS
from tests.training import running


def write_mnli(folder: Path, **rows: int) -> Path:
    folder.mkdir()
    generator = np.random.default_rng(0)
    for split, count in rows.items():
        texts = [[" ".join(generator.choice(WORDS, 4)) for _ in range(count)] for _ in range(2)]
        made = {
            "premise": texts[0],
            "hypothesis": texts[1],
            "label": generator.integers(0, 3, count),
            "idx": range(count),
        }
        pd.DataFrame(made).to_parquet(folder / f"{split}.parquet")
    return folder


def run(model: Path, folder: Path, out: Path, **changes: Any) -> list[Any]:
    return running.run(running.config(model, folder, task="glue/mnli", **({"epochs": 2} | changes)), out)


def test_both_splits_are_scored_and_the_first_is_measured(tiny_models, tmp_path, monkeypatch):
    scored: list[tuple[int, int]] = []
    made: list[_Run] = []
    build = _Run.__init__
    monkeypatch.setattr(_Run, "__init__", lambda self, *given: (made.append(self), build(self, *given))[1])
    folder = write_mnli(tmp_path / "data", train=32, validation_matched=20, validation_mismatched=27)
    events = run(tiny_models("bert"), folder, tmp_path / "run")
    evaluated = [event for event in events if event.kind == "evaluated"]
    names = {f"{metric}{split}" for metric in ("accuracy", "macro-f1") for split in ("", "_mismatched")}
    assert [set(event.metrics) for event in evaluated] == [names] * 3
    assert all(event.primary == "accuracy" for event in evaluated)
    for event in events:
        if event.kind == "measured":
            assert event.isotropy.clouds["head"].n == event.isotropy.clouds["pooled"].n == 20
    assert events[-1].kind == "finished"
    assert names < set(events[-1].metrics)
    # the last value, computed another way: all rows in one plain loop over the trained model
    model, (frame, encoded) = made[0].setup.plain.eval(), made[0].setup.rows.extra["mismatched"]
    with torch.no_grad():
        for item in range(len(encoded)):
            inputs = {name: torch.tensor([lists[item]]) for name, lists in encoded.inputs.items()}
            scored.append((int(frame["label"].iloc[item]), int(model(**inputs).logits.argmax())))
    assert len(scored) == 27
    assert evaluated[-1].metrics["accuracy_mismatched"] == pytest.approx(
        accuracy_score(*zip(*scored, strict=True)), abs=1e-12
    )
