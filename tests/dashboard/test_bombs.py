"""Small files that are large inside: refused in words that name the limit, while the server stays as small as it was."""

from __future__ import annotations

import io
import resource
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from streamlit.runtime.scriptrunner import StopException

from dashboard.shared import reading
from isoviz import tasks
from isoviz.access import uploads
from isoviz.errors import InputError
from isoviz.jobs import guarded
from isoviz.limits import Limits
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


@pytest.mark.parametrize("name", ["report", "check"])
def test_few_rows_of_one_long_text(tmp_path: Path, name: str) -> None:
    file = bomb(tmp_path / "train.parquet", 1_000_000, 20_000)
    with pytest.raises(InputError, match="ISOVIZ_READ_MEMORY"):
        READERS[name](str(file))


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


def test_an_archive_of_zeros(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (2**19, 2**10)})
    with (
        zipfile.ZipFile(tmp_path / "zeros.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a.npy", "w") as out,
    ):
        out.write(header.getvalue())
        for _ in range(512):  # of the 4 GiB that the header promises, an eighth
            out.write(bytes(2**20))
    assert (tmp_path / "zeros.npz").stat().st_size < 2**20
    with pytest.raises(InputError, match="ISOVIZ_READ_MEMORY"):
        arguments = {"path": str(tmp_path / "zeros.npz")}
        guarded.call("tests.jobs.guarded_work:shape_of", arguments, tuple[int, ...], allowed=Limits(memory=0.5))


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
