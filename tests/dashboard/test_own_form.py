"""Own data on the Train page: columns mapped and corrected, bad rows listed one by one, launched as the command says."""

from __future__ import annotations

import shlex
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from isoviz.runs.store import Store
from isoviz.tasks.protocol import OwnTask
from tests import tiny
from tests.dashboard.conftest import OpenPage
from tests.dashboard.reading import errors, texts
from tests.dashboard.test_train_page import _one_cpu, launch, numbers  # noqa: F401

MOODS = ["glad", "sad", "calm"]


def table(rows: int = 30) -> pd.DataFrame:
    """A table whose columns are called as no one expects."""
    return pd.DataFrame(
        {
            "Nr.": range(rows),
            "Was gesagt wurde": [f"the film number {row} is <b>fine</b> and *long*" for row in range(rows)],
            "Laune": [MOODS[row % 3] for row in range(rows)],
            "Sterne": [1 + row % 5 for row in range(rows)],
        }
    )


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    path = tmp_path / "reviews.csv"
    table().to_csv(path, index=False)
    return path


def own(open_page: OpenPage, path: Path | str) -> AppTest:
    """The Train page with own data chosen and its file named."""
    page = open_page("train", train_tasks="Own data")
    assert page.multiselect(key="train_tasks").value == ["own"]
    page.text_input(key="train_data.own").set_value(str(path)).run()
    return page


def choose(page: AppTest, **columns: str | None) -> AppTest:
    for name, column in columns.items():
        page.selectbox(key=f"train_own.{name}").set_value(column)
    return page.run()


def test_a_file_becomes_a_task_and_its_run(open_page: OpenPage, store: Store, reviews: Path) -> None:
    page = own(open_page, reviews)
    assert page.selectbox(key="train_own.text").value == "Was gesagt wurde"  # the only texts
    page = choose(page, label="Laune")
    assert errors(page) == []
    assert "Inferred: class" in texts(page)
    classes = next(frame.value for frame in page.dataframe if "class" in frame.value)
    assert classes["class"].tolist() == ["calm", "glad", "sad"]
    assert classes["rows"].tolist() == [10, 10, 10]
    page.number_input(key="train_own.share").set_value(0.3)
    page.number_input(key="train_own.split_seed").set_value(7)
    page.pills(key="train_methods").set_value(["baseline"]).run()
    assert "**validation** 9 rows" in texts(page)
    command = page.code[0].value
    launch(page)
    (row,) = store.list()
    expected = OwnTask(
        text="Was gesagt wurde", label="Laune", kind="classification", label_names=("calm", "glad", "sad"), share=0.3,
        split_seed=7,
    )  # fmt: skip
    assert (row.config.task, row.config.data, row.config.own) == ("own", str(reviews), expected)
    arguments = shlex.split(command)
    assert arguments[arguments.index("--text") + 1] == "Was gesagt wurde"
    assert arguments[arguments.index("--share") + 1] == "0.3"
    assert arguments[arguments.index("--split-seed") + 1] == "7"


def test_order_of_classes_can_be_changed(open_page: OpenPage, store: Store, reviews: Path) -> None:
    page = choose(own(open_page, reviews), label="Laune")
    page.text_area(key="train_own.label_names").set_value("sad\n calm \n\nglad").run()
    assert errors(page) == []
    assert "--label-names sad calm glad" in page.code[0].value
    page.text_area(key="train_own.label_names").set_value("sad\nsad\nglad").run()
    assert any("each class once" in error.lower() for error in errors(page))
    page.text_area(key="train_own.label_names").set_value("sad\nglad").run()
    assert any("calm" in error for error in errors(page))
    assert page.text_area(key="train_own.label_names").value == "sad\nglad"
    page.text_area(key="train_own.label_names").set_value("sad\ncalm\nglad").run()
    launch(page)
    assert {row.config.own.label_names for row in store.list() if row.config.own} == {("sad", "calm", "glad")}


def test_upload_with_and_without_a_validation_file(open_page: OpenPage, store: Store) -> None:
    page = open_page("train", train_tasks="Own data")
    page.segmented_control(key="train_from.own").set_value("Upload").run()
    content = table(12).to_csv(index=False).encode()
    page.file_uploader(key="train_upload.own.train").set_value(("x.csv", b"", "text/csv")).run()
    assert any("is empty" in error for error in errors(page))
    page.file_uploader(key="train_upload.own.train").set_value(("x.csv", content, "text/csv")).run()
    assert errors(page) == []
    folder = Path(page.text_input(key="train_data.own").value)
    assert [path.name for path in folder.iterdir()] == ["train.csv"]
    assert page.number_input(key="train_own.share").value == 0.2
    page.file_uploader(key="train_upload.own.validation").set_value(("v.csv", content, "text/csv")).run()
    choose(page, label="Laune")
    assert errors(page) == []
    assert not [field for field in page.number_input if field.key == "train_own.share"]
    assert "12 validation rows also appear in train" in texts(page)
    folder = page.text_input(key="train_data.own").value
    launch(page)
    assert {row.config.data for row in store.list()} == {folder}


def test_rows_of_a_task_are_shown_on_request(open_page: OpenPage, tmp_path: Path) -> None:
    folder = tiny.write("regression", tmp_path / "stsb")
    page = open_page("train", **{"train_tasks": "glue/stsb", "train_data.glue/stsb": str(folder)})
    assert errors(page) == []
    before = len(page.dataframe)
    page.session_state["rows_glue/stsb"] = True
    page.run()
    assert not page.exception
    assert len(page.dataframe) == before + 2


def test_direction_of_a_translation(open_page: OpenPage, store: Store, tmp_path: Path, tiny_models: object) -> None:
    folder = tiny.write("seq2seq", tmp_path / "wmt")
    model = str(tiny_models("bart"))  # type: ignore[operator]
    page = open_page(
        "train", **{"train_tasks": "wmt16/ro-en", "train_data.wmt16/ro-en": str(folder), "train_models": model}
    )
    page.pills(key="train_methods").set_value(["baseline"])
    page.number_input(key="train_max_length").set_value(64)
    direction = page.segmented_control(key="train_direction.wmt16/ro-en")
    assert direction.options == ["ro-en", "en-ro"]
    direction.set_value("en-ro").run()
    assert errors(page) == []
    launch(page)
    assert [(row.config.task, row.config.direction) for row in store.list()] == [("wmt16/ro-en", "en-ro")]
