"""Tokens of the heads: windows as the library makes them, large tables in parts, only the rows that are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from isoviz import tasks
from isoviz.config import RunConfig
from isoviz.models import sources
from isoviz.models.adapter import load_tokenizer
from isoviz.tasks import files
from isoviz.training import heads
from isoviz.training.evaluation import EncodedSplits
from isoviz.training.heads import Classification, EncodedSpans
from tests import tiny
from tests.training import running
from tests.training.running import run


def config(tiny_models: tiny.TinyModels, kind: str, folder: Any, **changes: Any) -> RunConfig:
    model = tiny_models("bart" if kind == "seq2seq" else "bert")
    return running.config(model, folder, kind=kind, **({"epochs": 1, "max_length": 24, "doc_stride": 8} | changes))


def rows_of(cfg: RunConfig) -> EncodedSplits:
    task = tasks.get(cfg.task)
    head = heads.head_for(task, load_tokenizer(sources.resolve(cfg.model)), cfg)
    return EncodedSplits(tasks.load(task, cfg.data, None, cfg.max_train, cfg.max_eval), head, cfg, (0, 1))


def test_windows_match_the_library(tiny_models, tmp_path):
    from isoviz.tasks import spans

    cfg = config(tiny_models, "span", tiny.write("span", tmp_path / "data"))
    rows = rows_of(cfg)
    columns = [rows.frame[name].tolist() for name in ("question", "context", "answer_starts", "answer_texts")]
    expected = spans.features(*columns[:2], load_tokenizer(sources.resolve(cfg.model)), 24, 8)
    assert isinstance(rows.validation, EncodedSpans)
    assert rows.validation.features.offsets == expected.offsets
    assert rows.validation.inputs == expected.inputs
    np.testing.assert_array_equal(rows.validation.rows, expected.row)
    np.testing.assert_array_equal(rows.validation.labels, spans.gold(expected, *columns[2:]))


@pytest.mark.parametrize("kind", list(tiny.TASKS))
def test_many_rows_are_tokenised_in_parts_with_progress(tiny_models, tmp_path, monkeypatch, kind):
    folder = tiny.write(kind, tmp_path / "data")
    expected = rows_of(config(tiny_models, kind, folder)).train
    monkeypatch.setattr(heads, "PART", 10)
    events = run(config(tiny_models, kind, folder), tmp_path / "run", lambda event: event.kind == "started")
    details = [event.detail for event in events if event.kind == "entered" and event.phase == "tokenising"]
    assert details[:4] == ["24 + 12 rows", "10 of 24 rows", "20 of 24 rows", "24 of 24 rows"]
    parts = rows_of(config(tiny_models, kind, folder)).train
    assert parts.inputs == expected.inputs and np.array_equal(parts.rows, expected.rows)
    assert str(parts.labels) == str(expected.labels)


def test_a_stop_does_not_wait_for_the_rest(tiny_models, tmp_path, monkeypatch):
    folder = tiny.write("classification", tmp_path / "data")
    monkeypatch.setattr(heads, "PART", 10)
    stop_when = lambda event: event.kind == "entered" and "of 24" in event.detail  # noqa: E731
    events = run(config(tiny_models, "classification", folder), tmp_path / "run", stop_when)
    assert [event.detail for event in events[-2:-1]] == ["10 of 24 rows"] and events[-1].kind == "stopped"


def test_only_the_chosen_of_many_rows_are_read_and_tokenised(tiny_models, tmp_path, monkeypatch):
    import pyarrow
    import pyarrow.parquet

    folder = tiny.write_cola(tmp_path / "data")
    labels = np.arange(100_000) % 2
    texts = pyarrow.DictionaryArray.from_arrays(pyarrow.array(labels, pyarrow.int32()), pyarrow.array(["w1 w2", "w0"]))
    table = pyarrow.table({"sentence": texts.cast(pyarrow.string()), "label": labels})
    pyarrow.parquet.write_table(table, folder / "train.parquet")
    converted: list[int] = []
    plain = files.columns_of
    monkeypatch.setattr(files, "columns_of", lambda frame, *rest: converted.append(len(frame)) or plain(frame, *rest))
    read: list[int] = []
    tokenise = Classification.tokenise
    monkeypatch.setattr(Classification, "tokenise", lambda self, f: read.append(len(f)) or tokenise(self, f))
    cfg = config(tiny_models, "classification", folder, max_train=1000, max_eval=20)
    events = run(cfg, tmp_path / "run", lambda event: event.kind == "started")
    assert converted == [1000, 20] and read == [1000, 20]
    assert any(e.kind == "entered" and (e.phase, e.detail) == ("tokenising", "1000 + 20 rows") for e in events)
