"""The worker's own part, in this process: where a result goes, and what is told when there is none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from isoviz.exploring import job_folder, jobs, measuring, results, shrinkage, worker
from isoviz.exploring import request as requests
from isoviz.exploring.progress import write_json
from isoviz.exploring.request import ViewRequest, key_of, rows_of
from isoviz.models import profile, sources
from tests.tiny import TinyModels


@pytest.fixture
def request_(tiny_models: TinyModels, cola: Path) -> ViewRequest:
    return ViewRequest(str(tiny_models("distilbert")), "glue/cola", str(cola), max_rows=6)


def job(request: ViewRequest, key: str) -> Path:
    folder = results.root() / "jobs" / key
    folder.mkdir(parents=True)
    write_json(folder / job_folder.REQUEST, request.as_json())
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


def test_pictures_are_there_before_twonn_is(request_: ViewRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    key = key_of(request_, sources.resolve(request_.model), rows_of(request_.task, request_.data))
    expected = measuring.compute(request_, lambda *words: None)
    early: list[results.ViewResult] = []
    completed = profile.completed

    def watched(*arguments: Any, **options: Any) -> Any:
        view = results.find(key)
        assert view is not None
        early.append(view)
        assert jobs.look(key).kind == "running"
        return completed(*arguments, **options)

    monkeypatch.setattr(profile, "completed", watched)
    assert worker.main([str(job(request_, key))]) == 0
    first, view = early[0], results.find(key)
    assert view is not None and first.folder == view.folder
    assert first.pending == tuple(measuring.pending()) and "twonn" in first.pending
    assert view.pending == () and "pending" not in view.facts
    assert view.facts["entries"] == json.loads(json.dumps(expected[0]["entries"]))
    for soon, whole in zip(first.entries, view.entries, strict=True):
        later = {*measuring.slow_metrics(), "isoscore_star"}
        assert soon.readings.keys() == whole.readings.keys()
        assert {slug for slug in whole.readings if soon.readings[slug] != whole.readings[slug]} <= later
        assert soon.why_undefined("twonn") == "still being computed"
    assert {*map(str, load_file(view.folder / results.ARRAYS))} == {*expected[1]}


def test_isoscore_star_comes_last_and_holds_up_nothing(request_: ViewRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    key = key_of(request_, sources.resolve(request_.model), rows_of(request_.task, request_.data))
    target = shrinkage.target
    early: list[results.ViewResult] = []

    def watched(*arguments: Any) -> Any:
        view = results.find(key)
        assert view is not None and jobs.look(key).kind == "running"
        early.append(view)
        return target(*arguments)

    monkeypatch.setattr(shrinkage, "target", watched)
    assert worker.main([str(job(request_, key))]) == 0
    (first,), view = early, results.find(key)
    assert view is not None and first.pending == ("isoscore_star",) and first.together is None
    assert "reason" in first.facts["output"] and first.facts["output"] == view.facts["output"]
    soon = "it is still being computed, from training tokens"
    assert {entry.why_undefined("isoscore_star") for entry in first.entries} == {soon}
    assert [entry.number("twonn") for entry in first.entries] == [entry.number("twonn") for entry in view.entries]
    assert view.together is not None and (view.together.number("isoscore_star") or 0) > 0
    assert all(entry.number("isoscore_star") for entry in view.entries if entry.pooling == "tokens")


def test_numbers_that_are_there_stay_while_the_rest_is_computed_again(
    request_: ViewRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = key_of(request_, sources.resolve(request_.model), rows_of(request_.task, request_.data))

    def fail(*arguments: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(shrinkage, "target", fail)
        folder = job(request_, key)
        assert worker.main([str(folder)]) == 1
    shutil.rmtree(folder)
    seen: list[tuple[str, ...]] = []
    completed = profile.completed

    def watched(*arguments: Any, **options: Any) -> Any:
        view = results.find(key)
        assert view is not None
        seen.append(view.pending)
        return completed(*arguments, **options)

    monkeypatch.setattr(profile, "completed", watched)
    assert worker.main([str(job(request_, key))]) == 0
    view = results.find(key)
    assert {*seen} == {("isoscore_star",)} and view is not None and not view.pending


def test_view_of_before_isoscore_star_has_another_key(request_: ViewRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    source, rows = sources.resolve(request_.model), rows_of(request_.task, request_.data)
    now = key_of(request_, source, rows)
    monkeypatch.setattr(requests, "FORMAT", 3)
    assert key_of(request_, source, rows) != now


def test_pictures_stay_when_twonn_fails_and_the_next_time_completes_them(
    request_: ViewRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = key_of(request_, sources.resolve(request_.model), rows_of(request_.task, request_.data))

    def fail(*arguments: object, **options: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(profile, "completed", fail)
        folder = job(request_, key)
        assert worker.main([str(folder)]) == 1
    view = results.find(key)
    assert view is not None and view.pending and jobs.look(key).kind == "failed"
    shutil.rmtree(folder)  # as `jobs.stop` does, which would end this process: it is the worker here
    assert jobs.look(key).kind == "none"
    assert worker.main([str(job(request_, key))]) == 0
    view = results.find(key)
    assert view is not None and not view.pending and jobs.look(key).kind == "done"
    assert all(entry.number("twonn") for entry in view.entries if entry.pooling == "tokens" and entry.layer == 2)


def test_view_that_made_room_before_it_was_whole_comes_back(
    request_: ViewRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = key_of(request_, sources.resolve(request_.model), rows_of(request_.task, request_.data))
    completed = profile.completed

    def crowded(*arguments: Any, **options: Any) -> Any:
        results.shrink(0)
        return completed(*arguments, **options)

    monkeypatch.setattr(profile, "completed", crowded)
    assert worker.main([str(job(request_, key))]) == 0
    view = results.find(key)
    assert view is not None and not view.pending and view.array(2, "cls", "ev") is not None


@pytest.mark.parametrize(
    ("error", "message", "field"),
    [
        (MemoryError(), "the machine's memory is not enough for this", "max_rows"),
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
    told = json.loads((folder / job_folder.ERROR).read_text())
    assert (told["message"], told["field"]) == (message, field) and told["advice"]
    assert jobs.look("some-key").kind == "failed"


def test_limit_that_is_no_number_stops_before_the_work(request_: ViewRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOVIZ_VIEWS_LIMIT", "lots")
    folder = job(request_, "some-key")
    assert worker.main([str(folder)]) == 1
    assert "number of GiB" in jobs.look("some-key").message
