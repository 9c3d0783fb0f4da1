"""Cached tokens of the heads: the same rows are tokenised once and read back unchanged."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest
from transformers import PreTrainedTokenizerBase

from isoviz import tasks
from isoviz.config import RunConfig
from isoviz.models import sources
from isoviz.models.adapter import load_tokenizer
from isoviz.training import heads, token_cache
from isoviz.training.evaluation import Rows
from isoviz.training.heads import Classification, EncodedSpans
from tests import tiny
from tests.training import running
from tests.training.running import run


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry per call of any tokenizer."""
    seen: list[int] = []
    plain = PreTrainedTokenizerBase.__call__

    def counted(self: Any, *args: Any, **options: Any) -> Any:
        seen.append(1)
        return plain(self, *args, **options)

    monkeypatch.setattr(PreTrainedTokenizerBase, "__call__", counted)
    return seen


def config(tiny_models: tiny.TinyModels, kind: str, folder: Any, **changes: Any) -> RunConfig:
    model = tiny_models("bart" if kind == "seq2seq" else "bert")
    return running.config(model, folder, kind=kind, **({"epochs": 1, "max_length": 24, "doc_stride": 8} | changes))


def rows_of(cfg: RunConfig) -> Rows:
    task = tasks.get(cfg.task)
    head = heads.head_for(task, load_tokenizer(sources.resolve(cfg.model)), cfg)
    return Rows(tasks.load(task, cfg.data, None, cfg.max_train, cfg.max_eval), head, cfg, (0, 1))


@pytest.mark.parametrize("kind", list(tiny.TASKS))
def test_the_same_rows_are_tokenised_once(tiny_models, tmp_path, calls, kind):
    folder = tiny.write(kind, tmp_path / "data")
    first = rows_of(config(tiny_models, kind, folder))
    made = len(calls)
    assert made > 0
    again = rows_of(config(tiny_models, kind, folder, batch_size=4))
    assert len(calls) == made
    for one, two in ((first.train, again.train), (first.validation, again.validation)):
        assert two.inputs == one.inputs
        assert np.array_equal(np.asarray(two.rows), np.asarray(one.rows))
        if isinstance(one.labels, list):
            assert two.labels == one.labels
        else:
            np.testing.assert_array_equal(two.labels, one.labels)
            assert two.labels.dtype == one.labels.dtype
        if isinstance(one, EncodedSpans):
            assert isinstance(two, EncodedSpans)
            assert two.features.offsets == one.features.offsets
            assert any(place is None for places in two.features.offsets for place in places)
            assert any(place is not None and place[0] > 0 for places in two.features.offsets for place in places)
    rows_of(config(tiny_models, kind, folder, max_eval=5))
    assert 0 < len(calls) - made < made  # the training rows are still the same
    made = len(calls)
    rows_of(config(tiny_models, kind, folder, max_length=20))
    assert len(calls) > made


def test_kept_windows_match_the_library(tiny_models, tmp_path):
    """Against `spans` itself: storing lists of integers loses nothing."""
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


def test_other_answers_are_other_rows(tiny_models, tmp_path):
    """Labels of spans are cached with the tokens, so the key must depend on them."""
    cfg = config(tiny_models, "span", tiny.write("span", tmp_path / "data"))
    data = tasks.load(tasks.get(cfg.task), cfg.data)
    head = heads.head_for(tasks.get(cfg.task), load_tokenizer(sources.resolve(cfg.model)), cfg)
    moved = data.validation.copy()
    first = moved.loc[0, "context"].split()[0]
    moved.at[0, "answer_texts"], moved.at[0, "answer_starts"] = [first], [0]
    assert not np.array_equal(head.encode(moved).labels, head.encode(data.validation).labels)


def test_a_second_run_starts_without_tokenising(tiny_models, tmp_path, calls):
    cfg = config(tiny_models, "classification", tiny.write("classification", tmp_path / "data"))
    phases = []
    for name in ("one", "two"):
        before = len(calls)
        events = run(cfg, tmp_path / name)
        phases.append((len(calls) - before, events[-1].metrics, events[-1].isotropy))
    assert [count for count, *_ in phases] == [2, 0]
    assert phases[0][1:] == phases[1][1:]
    assert len(list(token_cache.folder().glob("*.safetensors"))) == 2


@pytest.mark.parametrize("kind", list(tiny.TASKS))
def test_many_rows_are_tokenised_in_parts_with_progress(tiny_models, tmp_path, monkeypatch, kind):
    folder = tiny.write(kind, tmp_path / "data")
    expected = rows_of(config(tiny_models, kind, folder)).train
    shutil.rmtree(token_cache.folder())
    monkeypatch.setattr(heads, "PART", 10)
    events = run(config(tiny_models, kind, folder), tmp_path / "run", lambda event: event.kind == "started")
    details = [event.detail for event in events if event.kind == "entered" and event.phase == "tokenising"]
    assert details[:4] == ["24 + 12 rows", "10 of 24 rows", "20 of 24 rows", "24 of 24 rows"]
    parts = rows_of(config(tiny_models, kind, folder)).train  # as they were kept
    assert parts.inputs == expected.inputs and np.array_equal(parts.rows, expected.rows)
    assert str(parts.labels) == str(expected.labels)


def test_a_stop_does_not_wait_for_the_rest(tiny_models, tmp_path, monkeypatch):
    folder = tiny.write("classification", tmp_path / "data")
    monkeypatch.setattr(heads, "PART", 10)
    stop_when = lambda event: event.kind == "entered" and "of 24" in event.detail  # noqa: E731
    events = run(config(tiny_models, "classification", folder), tmp_path / "run", stop_when)
    assert [event.detail for event in events[-2:-1]] == ["10 of 24 rows"] and events[-1].kind == "stopped"
    assert not list(token_cache.folder().glob("*.safetensors"))


def test_only_the_chosen_of_many_rows_are_read_and_tokenised(tiny_models, tmp_path, monkeypatch):
    import pyarrow
    import pyarrow.parquet

    folder = tiny.write_cola(tmp_path / "data")
    labels = np.arange(100_000) % 2
    texts = pyarrow.DictionaryArray.from_arrays(pyarrow.array(labels, pyarrow.int32()), pyarrow.array(["w1 w2", "w0"]))
    table = pyarrow.table({"sentence": texts.cast(pyarrow.string()), "label": labels})
    pyarrow.parquet.write_table(table, folder / "train.parquet")
    converted: list[int] = []
    plain = pyarrow.Table.to_pandas
    monkeypatch.setattr("isoviz.tasks.files.to_frame", lambda t: converted.append(len(t)) or plain(t))
    read: list[int] = []
    tokenise = Classification.tokenise
    monkeypatch.setattr(Classification, "tokenise", lambda self, f: read.append(len(f)) or tokenise(self, f))
    cfg = config(tiny_models, "classification", folder, max_train=1000, max_eval=20)
    events = run(cfg, tmp_path / "run", lambda event: event.kind == "started")
    assert converted == [1000, 20] and read == [1000, 20]
    assert any(e.kind == "entered" and (e.phase, e.detail) == ("tokenising", "1000 + 20 rows") for e in events)
