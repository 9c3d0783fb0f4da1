"""Long files in the form: sampled, with a note, and read only once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from dashboard.shared import reading
from isoviz.runs import planning
from isoviz.tasks import report
from tests.dashboard.conftest import OpenPage

SAMPLE, ROWS = 5_000, 6_000


@pytest.fixture
def long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(report, "SAMPLE", SAMPLE)
    labels = np.arange(ROWS) % 2
    for split, count in (("train", ROWS), ("validation", 20)):
        texts = [f"w{number} and more words" for number in range(count)]
        pyarrow.parquet.write_table(
            pyarrow.table({"sentence": texts, "label": labels[:count]}), tmp_path / f"{split}.parquet"
        )
    return tmp_path


def test_a_long_file_is_sampled_and_read_once(open_page: OpenPage, long: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planning._load_once.cache_clear()
    read: list[str] = []
    plain = reading._ask
    monkeypatch.setattr(reading, "_ask", lambda name, *rest, **given: read.append(name) or plain(name, *rest, **given))
    page = open_page("train", **{"train_tasks": "glue/cola", "train_data.glue/cola": str(long)})
    assert not page.exception and not page.error
    text = "\n".join(element.value for element in [*page.markdown, *page.caption]).replace("\\", "")
    assert f"**train** {ROWS:,} rows (in a sample of {SAMPLE:,}): unacceptable 2" in text
    assert f"of train, the first rows and a random sample, {SAMPLE:,} of {ROWS:,}. Every row is" in text
    assert "**validation** 20 rows: unacceptable 10, acceptable 10" in text
    assert read == ["isoviz.tasks:check_data", "isoviz.tasks.reading:check"]  # the preview; then the runs
    page.text_input(key="train_seeds").set_value("0 1").run()
    page.session_state["rows_glue/cola"] = True
    page.run()
    assert not page.exception and len(read) == 2
    text = "\n".join(element.value for element in page.caption).replace("\\", "")
    assert f"The histograms are of train, the first rows and a random sample, {SAMPLE:,} of {ROWS:,}." in text
