"""A user's own files: preview, guesses, the split, errors, and a run from the command line."""

from __future__ import annotations

import shlex

import pandas as pd
import pytest

from isoviz import tasks
from isoviz.config import RunConfig
from isoviz.errors import DataError, InputError
from isoviz.runs import planning
from isoviz.tasks import own
from isoviz.tasks.protocol import OwnTask

MOODS = ["glad", "sad", "calm"]


def reviews(n=40, **columns):
    table = {"Nr": range(n), "Review text": [f"the film number {i} is fine" for i in range(n)]}
    return pd.DataFrame(table | {"mood": [MOODS[i % 3] for i in range(n)]} | columns)


def saved(folder, table, name="reviews.csv"):
    path = folder / name
    table.to_csv(path, index=False)
    return path


COLUMNS = OwnTask(text="Review text", label="mood")


def loaded(path, columns=COLUMNS):
    task = tasks.get("own", own.completed(path, columns))
    return task, tasks.load(task, path)


def test_one_file_becomes_two_splits_that_share_no_text(tmp_path):
    table = pd.concat([reviews(), reviews(10)])
    task, data = loaded(saved(tmp_path, table))
    assert task.columns == ("text",)
    assert task.label_names == ("calm", "glad", "sad")
    assert task.metrics == ("accuracy", "macro-f1", "matthews")
    assert len(data.train) + len(data.validation) == 50
    assert data.validation["text"].nunique() == 8  # a fifth of 40 distinct texts
    assert not set(data.train["text"]) & set(data.validation["text"])
    pairs = pd.concat([data.train, data.validation])
    expected = dict(zip(table["Review text"], table["mood"], strict=True))
    assert {text: task.label_names[code] for text, code in zip(pairs["text"], pairs["label"], strict=True)} == expected
    again = tasks.load(task, tmp_path / "reviews.csv")
    assert again.fingerprint == data.fingerprint
    other = COLUMNS.model_copy(update={"split_seed": 1})
    assert loaded(tmp_path / "reviews.csv", other)[1].fingerprint != data.fingerprint


@pytest.mark.parametrize(
    ("labels", "second", "kind"),
    [
        ([0, 1] * 20, None, "classification"),
        ([1.0, 2.0, 3.0, 4.0] * 10, None, "classification"),
        (["yes", "no"] * 20, "b", "classification"),
        ([True, False] * 20, None, "classification"),
        ([i / 3 for i in range(40)], None, "regression"),
        (list(range(40)), "b", "regression"),
        ([f"a text {i}" for i in range(40)], None, "seq2seq"),
        ([f"a text {i}" for i in range(40)], "b", "span"),
    ],
)
def test_kind_is_inferred(tmp_path, labels, second, kind):
    path = saved(tmp_path, reviews(mood=labels, b="beside"))
    guessed = own.guess(path, OwnTask(text="Review text", second=second, label="mood"))
    assert guessed.kind == kind
    assert guessed.why
    assert sum(guessed.counts) == (40 if kind == "classification" else 0)


def test_kind_and_classes_can_be_corrected(tmp_path):
    path = saved(tmp_path, reviews(mood=[1, 2, 10, 2] * 10))
    assert own.guess(path, COLUMNS).label_names == ("1", "2", "10")
    assert own.guess(path, COLUMNS).counts == (10, 20, 10)
    task, data = loaded(path, OwnTask(text="Review text", label="mood", kind="regression"))
    assert set(data.train["label"]) == {1.0, 2.0, 10.0}
    task, data = loaded(path, OwnTask(text="Review text", label="mood", label_names=("10", "2", "1")))
    assert task.label_names == ("10", "2", "1")
    number = int(data.train["text"][0].split()[3])
    assert task.label_names[data.train["label"][0]] == ["1", "2", "10", "2"][number % 4]


def test_a_preview_shows_columns_and_first_rows(tmp_path):
    path = saved(tmp_path, reviews())
    shown = own.preview(path, 3)
    assert shown.columns == ("Nr", "Review text", "mood")
    assert len(shown.rows) == 3
    assert shown.rows[1] == {"Nr": 1, "Review text": "the film number 1 is fine", "mood": "sad"}
    assert shown.split
    assert shown.files == {"train": ("reviews.csv",)}
    assert own.guess_columns(shown) == {"text": "Review text", "second": None, "third": None, "label": "mood"}
    reviews().to_parquet(tmp_path / "r.parquet")
    reviews().to_json(tmp_path / "r.jsonl", orient="records", lines=True)
    assert own.preview(tmp_path / "r.parquet", 3).rows == own.preview(tmp_path / "r.jsonl", 3).rows == shown.rows


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": "Text"}, "lacks the column Text (it has Nr, Review text, mood"),
        ({"second": "mood"}, "each column once"),
        ({"kind": "span"}, "answers need the column of the context"),
        ({"kind": "seq2seq", "second": "Nr"}, "label is the target"),
        ({"label_names": ("glad",)}, "at least two classes"),
        ({"label_names": ("glad", "sad")}, "'mood' must be one of glad, sad; got 'calm'"),
        ({"kind": "regression"}, "'mood' must be a number; got 'glad'"),
        ({"label": "Review text", "text": "mood", "kind": "classification"}, "reads 60 distinct|60 distinct values"),
    ],
)
def test_columns_that_cannot_be_used(tmp_path, change, message):
    path = saved(tmp_path, reviews(60))
    with pytest.raises(InputError) as caught:
        loaded(path, OwnTask(**{"text": "Review text", "label": "mood", **change}))
    assert any(part in str(caught.value) for part in message.split("|"))
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_used(tmp_path):
    with pytest.raises(DataError, match="has no data files"):
        own.find(tmp_path)
    saved(tmp_path, reviews(), "a.csv")
    saved(tmp_path, reviews(), "b.csv")
    with pytest.raises(DataError, match="2 data files and none is named train"):
        own.find(tmp_path)
    (tmp_path / "c.xlsx").write_bytes(b"x")
    with pytest.raises(DataError, match=r"ends in '.xlsx' \(allowed: .parquet"):
        own.find(tmp_path / "c.xlsx")
    with pytest.raises(DataError, match="not a file or folder"):
        own.find(tmp_path / "nowhere")
    with pytest.raises(DataError, match="1 distinct rows cannot be split"):
        loaded(saved(tmp_path, reviews(4, mood=["glad", "sad"] * 2, **{"Review text": "same"}), "d.csv"))


def test_the_configuration_keeps_everything_and_its_command_gives_it_back(tmp_path):
    path = saved(tmp_path, reviews())
    plan = {"data": str(path), "own": COLUMNS, "max_length": 32, "epochs": 1}
    (config,) = planning.expand(["demo/tiny-bert"], ["own"], [("baseline", {})], [0], **plan)
    assert config.own is not None
    assert config.own.kind == "classification"
    assert RunConfig.model_validate_json(config.model_dump_json()) == config
    words = shlex.split(planning.command([config]))
    assert words[words.index("--text") + 1] == "Review text"
    from isoviz.__main__ import build_parser
    from isoviz.commands.options import request_of
    from isoviz.commands.train import plan as planned

    assert planned(request_of(build_parser().parse_args(words[3:]))) == [config]
