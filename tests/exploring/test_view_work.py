"""A view's work, in this process: where its result goes, and in which steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from isoviz.exploring import measuring, results, shrinkage
from isoviz.exploring import request as requests
from isoviz.exploring.jobs import VIEW
from isoviz.exploring.request import ViewRequest, key_of, rows_of
from isoviz.jobs import queue
from isoviz.jobs.queue import JobState
from isoviz.jobs.results import ARRAYS, ResultStore
from isoviz.models import profile, sources
from tests.jobs.here import work_here
from tests.tiny import TinyModels


@pytest.fixture
def request_(tiny_models: TinyModels, cola: Path) -> ViewRequest:
    return ViewRequest(str(tiny_models("distilbert")), "glue/cola", str(cola), max_rows=6)


@pytest.fixture
def key(request_: ViewRequest) -> str:
    return key_of(request_, sources.resolve(request_.model), rows_of(request_.task, request_.data))


def work(request: ViewRequest, key: str) -> JobState:
    return work_here(VIEW, key, request.as_json())


def test_model_that_changed_name_by_arriving_is_kept_under_its_content(request_: ViewRequest, key: str) -> None:
    assert work(request_, "asked-before-the-download").status == "none"
    assert queue.look(VIEW, key).status == "done"


def test_older_views_make_room(request_: ViewRequest, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = {"0.cls.sigma": np.zeros(500, dtype=np.float32)}
    results.STORE.publish("old", {"depth": 0, "entries": []}, arrays)
    monkeypatch.setenv("ISOVIZ_VIEWS_LIMIT", "0.000001")  # a kilobyte
    assert work(request_, "asked-before-the-download").status == "none"
    assert results.find("old") is None and results.find(key) is not None  # the one just made stays


def test_pictures_are_there_before_twonn_is(request_: ViewRequest, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = measuring.compute(request_, lambda *words: None)
    early: list[results.ViewResult] = []
    completed = profile.completed

    def watched(*arguments: Any, **options: Any) -> Any:
        view = results.find(key)
        assert view is not None
        early.append(view)
        assert queue.look(VIEW, key).status == "running"
        return completed(*arguments, **options)

    monkeypatch.setattr(profile, "completed", watched)
    assert work(request_, key).status == "done"
    first, view = early[0], results.find(key)
    assert view is not None and first.folder == view.folder
    assert first.pending == tuple(measuring.pending()) and "twonn" in first.pending
    assert view.pending == () and "pending" not in view.facts
    assert view.facts["entries"] == json.loads(json.dumps(expected[0]["entries"]))
    for soon, complete in zip(first.entries, view.entries, strict=True):
        later = {*measuring.slow_metrics(), "isoscore_star"}
        assert soon.readings.keys() == complete.readings.keys()
        assert {slug for slug in complete.readings if soon.readings[slug] != complete.readings[slug]} <= later
        assert soon.readings["twonn"].undefined == "still being computed"
    assert {*map(str, load_file(view.folder / ARRAYS))} == {*expected[1]}


def test_isoscore_star_comes_last_and_holds_up_nothing(
    request_: ViewRequest, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = shrinkage.target
    early: list[results.ViewResult] = []

    def watched(*arguments: Any) -> Any:
        view = results.find(key)
        assert view is not None and queue.look(VIEW, key).status == "running"
        early.append(view)
        return target(*arguments)

    monkeypatch.setattr(shrinkage, "target", watched)
    assert work(request_, key).status == "done"
    (first,), view = early, results.find(key)
    assert view is not None and first.pending == ("isoscore_star",) and first.together is None
    assert "reason" in first.facts["output"] and first.facts["output"] == view.facts["output"]
    soon = "it is still being computed, from training tokens"
    assert {entry.readings["isoscore_star"].undefined for entry in first.entries} == {soon}
    assert [entry.number("twonn") for entry in first.entries] == [entry.number("twonn") for entry in view.entries]
    assert view.together is not None and (view.together.number("isoscore_star") or 0) > 0
    assert all(entry.number("isoscore_star") for entry in view.entries if entry.pooling == "tokens")


def test_numbers_that_are_there_stay_while_the_rest_is_computed_again(
    request_: ViewRequest, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:

    def fail(*arguments: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(shrinkage, "target", fail)
        assert work(request_, key).status == "failed"
    seen: list[tuple[str, ...]] = []
    completed = profile.completed

    def watched(*arguments: Any, **options: Any) -> Any:
        view = results.find(key)
        assert view is not None
        seen.append(view.pending)
        return completed(*arguments, **options)

    monkeypatch.setattr(profile, "completed", watched)
    assert work(request_, key).status == "done"
    view = results.find(key)
    assert {*seen} == {("isoscore_star",)} and view is not None and not view.pending


def test_view_of_before_isoscore_star_has_another_key(
    request_: ViewRequest, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, rows = sources.resolve(request_.model), rows_of(request_.task, request_.data)
    monkeypatch.setattr(requests, "FORMAT", 3)
    assert key_of(request_, source, rows) != key


def test_pictures_stay_when_twonn_fails_and_the_next_time_completes_them(
    request_: ViewRequest, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:

    def fail(*arguments: object, **options: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(profile, "completed", fail)
        assert work(request_, key).status == "failed"
    view = results.find(key)
    assert view is not None and view.pending
    queue.stop(VIEW, key)
    assert queue.look(VIEW, key).status == "none"
    assert work(request_, key).status == "done"
    view = results.find(key)
    assert view is not None and not view.pending and queue.look(VIEW, key).status == "done"
    assert all(entry.number("twonn") for entry in view.entries if entry.pooling == "tokens" and entry.layer == 2)


def test_view_evicted_before_completion_is_restored(
    request_: ViewRequest, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    completed = profile.completed

    def crowded(*arguments: Any, **options: Any) -> Any:
        ResultStore("views", lambda: 0).shrink()
        return completed(*arguments, **options)

    monkeypatch.setattr(profile, "completed", crowded)
    assert work(request_, key).status == "done"
    view = results.find(key)
    assert view is not None and not view.pending and view.array(2, "cls", "ev") is not None
