"""A run's predictions on its page: confusion matrix, numbers, texts, and the rows that went wrong."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.run import sections as run_view
from isoviz import tasks
from isoviz.config import RunConfig
from isoviz.runs.store import Store
from isoviz.tasks.protocol import OwnTask
from isoviz.training import predictions
from isoviz.training.heads import Answers
from tests import tiny
from tests.dashboard.conftest import Offered, OpenPage
from tests.dashboard.made_up import config, measured, result, started
from tests.dashboard.reading import drawn, mounted, texts


def finished(store: Store, cfg: RunConfig, values: list[Any], confidence: list[float] | None = None) -> str:
    """A finished run on real files that predicted these values, after epoch 3."""
    task = tasks.get(cfg.task, cfg.own)
    data = tasks.load(task, cfg.data, cfg.direction)
    (run,) = store.create([cfg])
    store.claim("test", "cpu", id=run)
    start = started().model_copy(update={"data_fingerprint": data.fingerprint})
    store.append(run, [start, measured(0.1, 0.2), result(0.5, 0.1)])
    predictions.save(store.folder_of(run), task, data.validation, Answers(values, confidence), epoch=3)
    return run


def opened(open_page: OpenPage, run: str) -> AppTest:
    """The page with the rows unfolded."""
    page = open_page("run", id=run)
    page.session_state["run_rows"] = True
    page.run()
    assert not page.exception
    return page


def shown(page: AppTest, column: str) -> pd.DataFrame:
    return next(frame.value for frame in page.dataframe if column in frame.value)


@pytest.fixture
def own(tmp_path: Path) -> RunConfig:
    """Six validation rows of three classes, of files with odd columns."""
    folder = tmp_path / "moods"
    folder.mkdir()
    for split, labels in (("train", "glad sad calm"), ("validation", "glad sad calm sad sad glad")):
        rows = [(f"text <b>{number}</b> of *{split}*", label) for number, label in enumerate(labels.split())]
        pd.DataFrame(rows, columns=["Was", "Laune"]).to_csv(folder / f"{split}.csv", index=False)
    columns = OwnTask(text="Was", label="Laune", kind="classification", label_names=("calm", "glad", "sad"))
    return config(task="own", data=str(folder), own=columns)


SAID = [1, 1, 0, 2, 1, 2]
SURE = [0.9, 0.8, 0.7, 0.6, 0.95, 0.5]


def test_confusion_matrix(store: Store, open_page: OpenPage, own: RunConfig, offered: Offered) -> None:
    page = open_page("run", id=finished(store, own, SAID, SURE))
    assert not page.exception
    assert "after epoch 3: n \\= 6" in texts(page) or "after epoch 3: n = 6" in texts(page)
    (figure,) = drawn(page)
    heat = figure["data"][0]
    assert heat["text"] == [["1<br>100%", "0<br>0%", "0<br>0%"], ["0<br>0%", "1<br>50%", "1<br>50%"],
                            ["0<br>0%", "2<br>67%", "1<br>33%"]]  # fmt: skip
    (chart,) = mounted(page)
    table = pd.read_parquet(io.BytesIO(offered[f"{chart['name']}.parquet"]()))
    assert table["predicted glad"].tolist() == [0, 1, 2]


def test_wrong_and_sure_rows_come_first_with_their_texts(store: Store, open_page: OpenPage, own: RunConfig) -> None:
    page = opened(open_page, finished(store, own, SAID, SURE))
    table = shown(page, "confidence")
    assert table["row"].tolist() == [5, 2, 6]
    assert table["text"].tolist()[0] == "text <b>4</b> of *validation*"
    assert table[["label", "prediction"]].to_numpy().tolist() == [["sad", "glad"], ["sad", "glad"], ["glad", "sad"]]
    page.toggle(key="run_wrong_only").set_value(False).run()
    assert shown(page, "confidence")["row"].tolist()[:4] == [5, 2, 6, 4]
    assert not page.warning
    assert not [element for element in page.markdown if element.allow_html]


def test_changed_and_missing_data_are_reported(store: Store, open_page: OpenPage, own: RunConfig) -> None:
    run = finished(store, own, SAID, SURE)
    assert own.data is not None
    path = Path(own.data) / "validation.csv"
    path.write_text(path.read_text().replace("text", "another text"))
    page = opened(open_page, run)
    assert "the data has changed since this run" in page.warning[0].value
    assert "text" not in shown(page, "confidence")
    assert shown(page, "confidence")["row"].tolist() == [5, 2, 6]
    path.unlink()
    (path.parent / "train.csv").unlink()
    page = opened(open_page, run)
    assert "Texts unavailable" in page.warning[0].value
    assert len(drawn(page)) == 1


@pytest.mark.parametrize("kind", ["regression", "span", "seq2seq"])
def test_other_kinds(store: Store, open_page: OpenPage, tmp_path: Path, kind: str, offered: Offered) -> None:
    folder = tiny.write(kind, tmp_path / kind)
    cfg = config(task=tiny.TASKS[kind], data=str(folder), **({"direction": "ro-en"} if kind == "seq2seq" else {}))
    rows = tasks.load(tasks.get(cfg.task), folder, cfg.direction).validation
    if kind == "regression":
        predicted: list[Any] = (rows["label"] + 1).tolist()
        predicted[3] += 2
    else:
        predicted = rows["target"].tolist() if kind == "seq2seq" else [texts[0] for texts in rows["answer_texts"]]
        predicted[3] = "<i>nonsense</i>"
    page = opened(open_page, finished(store, cfg, predicted))
    assert not page.warning
    if kind == "regression":
        (figure,) = drawn(page)
        assert figure["data"][0]["y"] == pytest.approx(predicted)
        (name,) = [component["name"] for component in mounted(page)]
        assert name.startswith("isoviz-") and name.endswith("-predicted")
        saved = pd.read_parquet(io.BytesIO(offered[f"{name}.parquet"]()))
        assert (
            saved["prediction"].tolist() == pytest.approx(predicted)
            and saved["label"].tolist() == rows["label"].tolist()
        )
        table = shown(page, "residual")
        assert (table["row"][0], table["residual"][0]) == (4, pytest.approx(3))
        assert table["sentence1"][0] == rows["sentence1"][3]
    elif kind == "span":
        table = shown(page, "f1")
        assert (table["row"][0], table["f1"][0], table["f1"][1]) == (4, 0, 1)
        assert table["question"][0] == rows["question"][3]
    else:
        assert shown(page, "source")["source"].tolist() == rows["source"].tolist()


def test_configuration_has_what_applies(own: RunConfig) -> None:
    lines = {field: value for _, value, field in run_view.config_lines(own)}
    assert (lines["own.text"], lines["own.label"], lines["own.label_names"]) == ("Was", "Laune", "calm, glad, sad")
    assert not {"own", "direction", "doc_stride", "num_beams", "own.second"} & set(lines)
    span = {field: value for _, value, field in run_view.config_lines(config(task="squad", doc_stride=32))}
    assert (span["doc_stride"], "direction" in span) == ("32", False)
    writes = {field: value for _, value, field in run_view.config_lines(config(task="wmt16/ro-en", direction="en-ro"))}
    assert (writes["direction"], writes["num_beams"], "doc_stride" in writes) == ("en-ro", "1", False)
