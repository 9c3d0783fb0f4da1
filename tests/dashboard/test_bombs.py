"""Small files that are large inside: refused in words that name the limit, while the server stays as small as it was."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from streamlit.runtime.scriptrunner import StopException

from dashboard.shared import reading
from isoviz import tasks
from isoviz.errors import InputError
from isoviz.jobs import guarded
from isoviz.operations.access import uploads
from isoviz.tasks.protocol import OwnTask
from tests.dashboard.conftest import OpenPage
from tests.dashboard.reading import errors
from tests.fuzzing.files import bomb
from tests.jobs.here import end_readers

GROWTH = 300 * 2**20
COLUMNS = OwnTask(text="text", label="label")


@pytest.fixture(autouse=True)
def reading_here() -> None:
    """Here pages read files in a separate process."""


@pytest.fixture(autouse=True)
def _small_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Low limits, and a check that this process never loads the files' content."""
    monkeypatch.setenv("ISOVIZ_READ_MEMORY", "0.5")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    end_readers()
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 <= GROWTH


READERS: dict[str, Callable[[str], Any]] = {
    "preview": reading.preview,
    "guess": lambda data: reading.guess(data, COLUMNS),
    "report": lambda data: reading.report(tasks.get("own", COLUMNS.model_copy(update=OF_KIND)), data, None),
    "check": lambda data: reading.check(tasks.get("own", COLUMNS.model_copy(update=OF_KIND)), data),
}
OF_KIND = {"kind": "classification", "label_names": ("0", "1")}


def test_few_rows_of_one_long_text(tmp_path: Path) -> None:
    file = bomb(tmp_path / "train.parquet", 1_000_000, 20_000)
    with pytest.raises(InputError, match="ISOVIZ_READ_MEMORY"):
        READERS["report"](str(file))


def test_the_preview_of_a_bomb_is_small(tmp_path: Path) -> None:
    preview = reading.preview(str(bomb(tmp_path / "train.parquet", 1_000_000, 20_000)))
    assert preview.columns == ("text", "label") and len(preview.rows) == 20
    assert all(len(str(row["text"])) < 2_100 for row in preview.rows)


def test_a_csv_of_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "train.csv"
    with path.open("w") as stream:
        stream.write("text,label\n")
        for _ in range(80):
            stream.write("x" * 2**20)
    with pytest.raises(InputError, match="cannot be read as CSV: field larger than field limit"):
        reading.preview(str(path))
    monkeypatch.setenv("ISOVIZ_READ_MEMORY", "0.05")
    with pytest.raises(InputError, match="ISOVIZ_READ_MEMORY"):
        reading.preview(str(path))


def test_deeply_nested_json(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text("[" * 200_000)
    with pytest.raises(InputError) as caught:
        reading.preview(str(path))
    assert "\n" not in str(caught.value)


def test_an_upload_that_is_a_bomb_is_not_kept(tmp_path: Path) -> None:
    content = bomb(tmp_path / "bomb.parquet", 1_000_000, 20_000).read_bytes()
    folder = uploads.save(tmp_path, {"train": ("a.parquet", content)})  # a table, of which a page sees 20 rows
    with pytest.raises(InputError, match="ISOVIZ_READ_MEMORY"):
        READERS["check"](str(folder))
    files = {"train": ("a.parquet", content), "validation": ("b.parquet", content)}
    before = set((tmp_path / "uploads").iterdir())
    with pytest.raises(InputError, match="ISOVIZ_READ_MEMORY|lacks the column"):
        uploads.save(tmp_path, files, tasks.get("glue/cola"))
    assert set((tmp_path / "uploads").iterdir()) == before


def test_the_page_names_the_limit(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page("train", train_tasks="Own data")
    page.text_input(key="train_data.own").set_value(str(bomb(tmp_path / "train.parquet", 1_000_000, 20_000))).run()
    page.selectbox(key="train_own.text").set_value("text")
    page.selectbox(key="train_own.label").set_value("label").run()
    assert not page.exception
    assert any("at most 0.5 GiB of memory" in error.replace("\\", "") for error in errors(page))
    assert page.button(key="launch").disabled


@pytest.mark.parametrize("in_callback", [False, True])
def test_reading_ends_with_the_tab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_callback: bool) -> None:
    mark = tmp_path / "mark"
    monkeypatch.setattr(reading, "session_id", lambda: "one")
    # the tab is closed once the work has begun
    monkeypatch.setattr(reading, "session_is_open", lambda session: not (mark.exists() and mark.read_text()))
    arguments = {"mark": str(mark), "seconds": 600}
    with pytest.raises(StopException):
        guarded.call(
            "tests.jobs.guarded_work:wait", arguments, None, imports=(), pulse=reading.still_wanted(in_callback)
        )
    assert not psutil.pid_exists(int(mark.read_text()))
