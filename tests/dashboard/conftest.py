"""Pages without a browser: a store of the test's own, no runner, Streamlit's AppTest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dashboard.shared import downloads, resources
from isoviz.errors import InputError, IsoVizError
from isoviz.exploring import measuring
from isoviz.exploring.request import ViewRequest
from isoviz.exploring.results import ViewResult
from isoviz.jobs import answering, guarded, queue
from isoviz.jobs.kinds import Job, JobKind, Recent, Report
from isoviz.jobs.queue import JobState
from isoviz.jobs.worker import load
from isoviz.limits import Limits
from isoviz.runs.store import Store
from tests.dashboard.reading import ROWS, address, keep, packages_scanned_once
from tests.tiny import TinyModels, write_cola

ROOT = Path(__file__).resolve().parents[2]
OpenPage = Callable[..., AppTest]
Opened = Callable[..., AppTest]
Offered = dict[str, Callable[[], bytes]]
PATIENCE = 180.0
"""Seconds that a run of a page may take on a busy machine."""


class _ReaderHere:
    """Answers as a reading process does, in this one."""

    def call(self, order: Mapping[str, Any], *, allowed: Limits, pulse: Callable[[], None]) -> dict[str, Any]:
        request = json.loads(json.dumps(order))
        try:
            answer = answering.called(load(request["call"]), request["arguments"])
        except IsoVizError as error:
            answer = answering.refusal(error)
        reply: dict[str, Any] = json.loads(answer)
        return reply

    def end(self) -> None: ...


@pytest.fixture(autouse=True)
def reading_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages read files in this process, because starting a reader for each test's home would take seconds. `test_bombs` starts readers."""
    monkeypatch.setattr(guarded, "_reader", lambda pulse: nullcontext(_ReaderHere()))
    monkeypatch.setattr(guarded, "warm", lambda *_: None)


@pytest.fixture(scope="session", autouse=True)
def _packages_scanned_once() -> Iterator[None]:
    with packages_scanned_once():
        yield


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The store that the pages of this test read."""
    monkeypatch.setenv("ISOVIZ_RUNNER", "off")
    yield resources.store()
    resources.close()


@pytest.fixture(autouse=True)
def empty_cache() -> None:
    """No test finds what another one's pages have cached."""
    st.cache_data.clear()


@pytest.fixture
def open_page(store: Store) -> OpenPage:
    """`open_page("live", run="…")`: the app at that page, with those query parameters; AppTest never runs the lifespan."""

    def opened(name: str, **query: str) -> AppTest:
        app = AppTest.from_file(ROOT / "dashboard" / "app.py", default_timeout=PATIENCE)
        app.switch_page(str(ROOT / "pages" / f"{name}.py"))
        for key, value in query.items():
            app.query_params[key] = value
        return app.run()

    return opened


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> Offered:
    """What pages offer as files from now on: name → what makes its bytes."""
    offers: Offered = {}
    button = downloads.st.download_button

    def noted(label: str, data: Any, file_name: str, *arguments: Any, **options: Any) -> bool:
        offers[file_name] = data
        return button(label, data, file_name, *arguments, **options)

    monkeypatch.setattr(downloads.st, "download_button", noted)
    return offers


@pytest.fixture(scope="session")
def explored(tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory) -> tuple[ViewRequest, dict, dict]:  # type: ignore[type-arg]
    """A small view, really computed: its request, facts and arrays."""
    folder = write_cola(tmp_path_factory.mktemp("data") / "cola")
    request = ViewRequest(str(tiny_models("bert")), "glue/cola", str(folder), max_rows=ROWS)
    return request, *measuring.compute(request, lambda done, total, text: None)


@pytest.fixture
def kept_view(explored: tuple[ViewRequest, dict, dict]) -> ViewResult:  # type: ignore[type-arg]
    """That view, where the pages of this test find it."""
    return keep(explored)


@pytest.fixture
def opened(open_page: OpenPage, kept_view: ViewResult, explored: tuple[ViewRequest, dict, dict]) -> Opened:  # type: ignore[type-arg]
    """`opened(explore_layer="1")`: Explore with that view and these query parameters."""
    return lambda **query: open_page("explore", **address(explored[0], **query))


@pytest.fixture
def jobs_here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Jobs are done at once, in this process; returns the names of their kinds."""
    done: list[str] = []

    def start(kind: JobKind, key: str, request: dict[str, Any], *_: object, **__: object) -> JobState:
        done.append(kind.name)
        try:
            kind.work(Job(kind, key, request, Report(), Recent(1)))
        except InputError as error:
            return JobState("failed", key, message=str(error), field=error.field, advice=error.advice or "")
        return queue.look(kind, key)

    monkeypatch.setattr(queue, "start", start)
    return done
