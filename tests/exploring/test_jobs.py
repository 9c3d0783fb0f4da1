"""Explore's jobs with real processes: a view that fails and is computed; sentences and maps in processes that stay."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isoviz.exploring import maps, results
from isoviz.exploring.jobs import MAP, SENTENCES, VIEW
from isoviz.exploring.request import ViewRequest, key_of, rows_of
from isoviz.jobs import queue
from isoviz.jobs.kinds import Recent
from isoviz.jobs.queue import JobState
from isoviz.models import sources
from tests.jobs.here import ask, work_here
from tests.tiny import TinyModels, embed

PATIENCE = 240.0
"""Seconds for a process that imports torch on a busy machine."""


@pytest.fixture
def request_(tiny_models: TinyModels, cola: Path) -> ViewRequest:
    return ViewRequest(str(tiny_models("bert")), "glue/cola", str(cola), max_rows=12)


@pytest.fixture
def key(request_: ViewRequest) -> str:
    return key_of(request_, sources.resolve(request_.model), rows_of(request_.task, request_.data))


def start(request: ViewRequest, key: str) -> JobState:
    return queue.start(VIEW, key, request.as_json())


def wait(
    look: Callable[[], JobState], until: Callable[[JobState], bool] = lambda state: not state.under_way
) -> JobState:
    deadline = time.monotonic() + PATIENCE
    while not until(state := look()):
        assert time.monotonic() < deadline, state
        queue.dispatch()
        time.sleep(0.02)
    return state


def test_a_view_that_failed_says_why_and_the_next_is_found(request_: ViewRequest, key: str) -> None:
    assert queue.look(VIEW, key).status == "none"
    assert start(replace(request_, max_length=1), key).under_way  # no room for a word
    failed = wait(lambda: queue.look(VIEW, key))
    assert (failed.status, failed.field) == ("failed", "max_length") and results.find(key) is None
    assert failed.message == "max_length: must be at least 3 for this model (got 1)"
    assert start(request_, key).under_way
    fractions = [0.0]

    def look() -> JobState:
        state = queue.look(VIEW, key)
        fractions.append(state.progress.fraction if state.under_way else 1.0)
        return state

    assert wait(look).status == "done" and fractions == sorted(fractions)
    view = results.find(key)
    assert view is not None and view.facts["rows"] == 12 and view.poolings == ["cls", "mean", "tokens"]
    ev = view.array(2, "cls", "ev")
    assert ev is not None and ev[0] == pytest.approx(view.entry(2, "cls").curve("ev")[0], rel=1e-6)
    assert start(request_, key).status == "done"


def sentences(name: str, *lines: str, **more: Any) -> dict[str, Any]:
    more.setdefault("fingerprint", name)
    return {"model": name, "layer": 2, "pooling": "mean", "max_length": 64, "texts": [list(lines)], **more}


def test_sentences_through_a_process_that_stays(
    tiny_models: TinyModels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = str(shutil.copytree(tiny_models("bert"), tmp_path / "model"))
    first = sentences(name, "w1 w2", "w3")
    done = wait(lambda: ask(SENTENCES, first))
    assert done.status == "done" and done.result is not None, done
    expected = embed(sources.resolve(name), first["texts"], pooling="mean", layer=2, max_length=64)
    np.testing.assert_allclose(done.result.arrays["points"], expected, atol=1e-5)

    (entry,) = queue.processes()
    Path(name).rename(tmp_path / "away")
    later = sentences(name, "w5 w6 w7")
    assert wait(lambda: ask(SENTENCES, later)).status == "done"  # the model still there: not on the disk
    assert [again.pid for again in queue.processes()] == [entry.pid]

    elsewhere = sentences(name, "w1", fingerprint="another")
    failed = wait(lambda: ask(SENTENCES, elsewhere))
    assert failed.status == "failed" and "no such model" in failed.message and failed.field == "model"
    assert ask(SENTENCES, elsewhere).status == "failed"
    (tmp_path / "away").rename(name)
    assert queue.retry(SENTENCES, failed.key).under_way  # what its button does
    assert wait(lambda: ask(SENTENCES, elsewhere)).status == "done"


def test_map_is_laid_out_once_and_points_are_placed_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    results.STORE.publish("v", {"entries": []}, {"2.cls.cloud": x.astype(np.float16)})
    settings = maps.MapRequest("umap", neighbours=5)
    request = {"view": "v", "layer": 2, "pooling": "cls", "map": settings.as_json()}
    fits: list[int] = []
    memory = Recent(1)

    class Fitted:
        embedding_ = x[:, :2]

        def transform(self, points: Any) -> Any:
            return points[:, :2]

    monkeypatch.setattr(maps, "fit_umap", lambda points, request, report: fits.append(len(points)) or Fitted())
    drawn = work_here(MAP, "a", request, memory=memory).result
    placed = work_here(MAP, "b", request, {"points": x[:3]}, memory).result
    assert drawn is not None and placed is not None
    np.testing.assert_array_equal(drawn.arrays["coordinates"], x[:, :2])
    np.testing.assert_array_equal(placed.arrays["coordinates"], x[:3, :2])
    assert fits == [40]
    assert "no longer cached" in work_here(MAP, "c", {**request, "view": "gone"}, memory=memory).message
