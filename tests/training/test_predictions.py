"""Predictions are kept for each head kind, and the metrics that a run reports follow from them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from isoviz import tasks
from isoviz.config import RunConfig
from isoviz.runs import pretrained
from isoviz.tasks import metrics
from isoviz.training import predictions, weights
from isoviz.training.heads import Answers
from tests import tiny
from tests.training.running import run
from tests.training.test_kinds import config


@pytest.mark.parametrize("kind", list(tiny.TASKS))
def test_kept_predictions_give_the_reported_metrics(tiny_models, tmp_path, kind):
    folder = tiny.write(kind, tmp_path / "data")
    beams = {"num_beams": 4} if kind == "seq2seq" else {}
    cfg = config(tiny_models("bart" if kind == "seq2seq" else "bert"), folder, kind, epochs=2, **beams)
    events = run(cfg, tmp_path / "run")
    stored = predictions.load(tmp_path / "run")
    assert stored is not None
    assert (stored.epoch, stored.rows, len(stored.table)) == (2, 12, 12)
    assert stored.table["row"].tolist() == list(range(1, 13))
    task = tasks.get(cfg.task)
    rows = tasks.load(task, folder).validation
    if kind in ("classification", "regression", "embedding"):
        assert stored.table["label"].tolist() == rows["label"].tolist()
        labels, predicted = stored.table["label"].to_numpy(), stored.table["prediction"].to_numpy()
    else:
        labels = rows["target"].tolist() if kind == "seq2seq" else rows["answer_texts"].tolist()
        assert [value if isinstance(value, str) else list(value) for value in stored.table["label"]] == labels
        predicted = stored.table["prediction"].tolist()
    reported = {name: events[-1].metrics[name] for name in task.metrics}
    assert metrics.compute(task.metrics, labels, predicted, kind=kind) == pytest.approx(reported, nan_ok=True)
    assert ("confidence" in stored.table) == (kind == "classification")
    if kind == "classification":
        assert stored.table["confidence"].between(0.5, 1).all()
        assert stored.table["confidence"].nunique() > 1
    if kind == "seq2seq":
        texts = rows["source"].tolist()
        assert written_without_isoviz(cfg, tmp_path, texts) == predicted
    assert [path.name for path in (tmp_path / "run" / "arrays").glob("*.partial")] == []


def written_without_isoviz(config: RunConfig, folder: Path, texts: list[str]) -> list[str]:
    """What the run in `folder / "run"`, saved for transformers, writes with the options that come with it."""
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    order = {"run": "run", "config": config, "checkpoint": weights.newest(folder / "run"), "scores": {}}
    (folder / "saved").mkdir()
    pretrained._write(order, folder / "saved", "saved")
    tokenizer = AutoTokenizer.from_pretrained(folder / "saved")
    model = AutoModelForSeq2SeqLM.from_pretrained(folder / "saved").eval()
    tokens = model.generate(**tokenizer(texts, padding=True, return_tensors="pt"))
    return [text.strip() for text in tokenizer.batch_decode(tokens, skip_special_tokens=True)]


def test_many_rows_are_cut_and_that_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(predictions, "MAX_ROWS", 3)
    frame = pd.DataFrame({"sentence": list("abcde"), "label": [0, 1, 0, 1, 0]})
    predictions.save(tmp_path, tasks.get("glue/cola"), frame, Answers([1, 1, 0, 0, 0], [0.9, 0.8, 0.7, 0.6, 0.5]), 3)
    stored = predictions.load(tmp_path)
    assert stored is not None
    assert (stored.rows, stored.epoch, stored.table["prediction"].tolist()) == (5, 3, [1, 1, 0])
