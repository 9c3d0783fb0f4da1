"""A view's work, in this process: where its result goes, and in which steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from isoviz.exploring import measuring, results, shrinkage
from isoviz.exploring.jobs import VIEW
from isoviz.exploring.request import ViewRequest, key_of, rows_of
from isoviz.jobs import queue
from isoviz.jobs.queue import JobState
from isoviz.jobs.results import ARRAYS
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


def test_the_numbers_come_in_three_stages(request_: ViewRequest, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = measuring.compute(request_, lambda *words: None)
    stages: dict[str, results.ViewResult] = {}

    def watch(module: Any, name: str) -> None:
        plain = getattr(module, name)

        def watched(*arguments: Any, **options: Any) -> Any:
            view = results.find(key)
            assert view is not None and queue.look(VIEW, key).status == "running"
            stages.setdefault(name, view)
            return plain(*arguments, **options)

        monkeypatch.setattr(module, name, watched)

    watch(profile, "completed")
    watch(shrinkage, "target")
    assert work(request_, key).status == "done"
    first, second, view = stages["completed"], stages["target"], results.find(key)
    assert view is not None and first.folder == view.folder
    assert first.pending == tuple(measuring.pending()) and second.pending == ("isoscore_star",) and not view.pending
    assert view.facts["entries"] == json.loads(json.dumps(expected[0]["entries"]))
    for soon, complete in zip(first.entries, view.entries, strict=True):
        later = {*measuring.slow_metrics(), "isoscore_star"}
        assert soon.readings.keys() == complete.readings.keys()
        assert {slug for slug in complete.readings if soon.readings[slug] != complete.readings[slug]} <= later
        assert soon.readings["twonn"].undefined == "still being computed"
    assert second.together is None and second.facts["output"] == view.facts["output"]
    assert [entry.number("twonn") for entry in second.entries] == [entry.number("twonn") for entry in view.entries]
    assert view.together is not None and (view.together.number("isoscore_star") or 0) > 0
    assert all(entry.number("isoscore_star") for entry in view.entries if entry.pooling == "tokens")
    assert {*map(str, load_file(view.folder / ARRAYS))} == {*expected[1]}


@pytest.mark.parametrize(("module", "name"), [(profile, "completed"), (shrinkage, "target")])
def test_numbers_that_are_there_stay_when_the_rest_fails_and_the_next_time_completes_them(
    request_: ViewRequest, key: str, monkeypatch: pytest.MonkeyPatch, module: Any, name: str
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(module, name, fail)
        assert work(request_, key).status == "failed"
    view = results.find(key)
    assert view is not None and view.pending
    queue.stop(VIEW, key)
    assert queue.look(VIEW, key).status == "none"
    assert work(request_, key).status == "done"
    view = results.find(key)
    assert view is not None and not view.pending and queue.look(VIEW, key).status == "done"
    assert all(entry.number("twonn") for entry in view.entries if entry.pooling == "tokens" and entry.layer == 2)
