"""The worker's own part, in this process: where a result goes, and what is told when there is none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from isoviz.exploring import jobs, measuring, results, worker
from isoviz.exploring.progress import write_json
from isoviz.exploring.request import ViewRequest, key_of, rows_of
from isoviz.models import sources
from tests.tiny import TinyModels


@pytest.fixture
def request_(tiny_models: TinyModels, cola: Path) -> ViewRequest:
    return ViewRequest(str(tiny_models("distilbert")), "glue/cola", str(cola), max_rows=6)


def job(request: ViewRequest, key: str) -> Path:
    folder = results.root() / "jobs" / key
    folder.mkdir(parents=True)
    write_json(folder / worker.REQUEST, request.as_json())
    return folder


def test_model_that_changed_name_by_arriving_is_kept_under_its_content(request_: ViewRequest) -> None:
    folder = job(request_, "asked-before-the-download")
    assert worker.main([str(folder)]) == 0
    assert not folder.exists() and jobs.look(folder.name).kind == "none"
    true = key_of(request_, sources.resolve(request_.model), rows_of(request_.task, request_.data))
    assert jobs.look(true).kind == "done"


def test_older_views_make_room(request_: ViewRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = {"0.cls.sigma": np.zeros(500, dtype=np.float32)}
    results.publish(results.root() / "old", "old", {"depth": 0, "entries": []}, arrays, at=results.root())
    monkeypatch.setenv("ISOVIZ_VIEWS_LIMIT", "0.000001")  # a kilobyte
    assert worker.main([str(job(request_, "new"))]) == 0
    assert results.find("old") is None and results.size() > 1_000  # the one just made stays


@pytest.mark.parametrize(
    ("error", "message", "field"),
    [
        (MemoryError(), "the machine's memory is not enough for this view", "max_rows"),
        (RuntimeError("a bug\nwith details"), "the computation failed with RuntimeError: a bug", None),
        (AssertionError(), "the computation failed with AssertionError", None),
    ],
)
def test_what_went_wrong_is_told(
    error: Exception, message: str, field: str | None, request_: ViewRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(measuring, "compute", fail)
    folder = job(request_, "some-key")
    assert worker.main([str(folder)]) == 1
    told = json.loads((folder / worker.ERROR).read_text())
    assert (told["message"], told["field"]) == (message, field) and told["advice"]
    assert jobs.look("some-key").kind == "failed"


def test_limit_that_is_no_number_stops_before_the_work(request_: ViewRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOVIZ_VIEWS_LIMIT", "lots")
    folder = job(request_, "some-key")
    assert worker.main([str(folder)]) == 1
    assert "number of GiB" in jobs.look("some-key").message
