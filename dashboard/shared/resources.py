"""Shared by the whole process: the store, the runner, and the service of background jobs.

They are module globals instead of Streamlit resources, because users can clear that cache and hot reload fills it again.
All state is in the store, so a runner can be rebuilt at any time.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import streamlit as st

from dashboard.shared import visitor
from isoviz import allowed_paths
from isoviz.allowed_paths import Roots
from isoviz.home import home, make_private, store_url
from isoviz.operations.access import policy, uploads
from isoviz.operations.access.allowed_hosts import AllowedHosts, switched_on
from isoviz.operations.access.policy import Policy

if TYPE_CHECKING:
    from isoviz.jobs.service import JobService
    from isoviz.operations.access.service import Service
    from isoviz.operations.access.visitors import Visitor
    from isoviz.runs.examples import Library
    from isoviz.runs.runner import Runner
    from isoviz.runs.store import Store

_lock = threading.RLock()
_stores: dict[str, Store] = {}
_runners: dict[str, Runner] = {}
_job_service: JobService | None = None
_drawn = 0
"""Pages that are being drawn."""
_CROWD = 4
"""Pages from which on threads switch less often: forty that open at once would spend their time on it, and other visitors wait longer."""


def _url() -> str:
    """The app's store: `ISOVIZ_STORE` (a URL or folder, from `isoviz app --store`), else the store in `ISOVIZ_HOME`."""
    return store_url(os.environ.get("ISOVIZ_STORE") or None)


@contextmanager
def drawing() -> Iterator[None]:
    """Around each page that is drawn.

    A browser that opens a page requests dozens of small files while its script runs. Each switches threads several times and would
    wait 5 ms each time, Python's default (48 files during a busy thread: 0.9 s, with this interval 0.3 s).
    """
    _count(1)
    try:
        yield
    finally:
        _count(-1)


def _count(change: int) -> None:
    global _drawn
    with _lock:
        _drawn += change
        sys.setswitchinterval(0.0005 if _drawn < _CROWD else 0.005)


def store() -> Store:
    """The app's store, opened once per process."""
    from isoviz.runs.store import Store

    url = _url()
    with _lock:
        if url not in _stores:
            _stores[url] = Store(url)
        return _stores[url]


def library() -> Library:
    """The store's runs, and the examples."""
    from isoviz.runs.examples import Library, opened

    return Library(store(), opened())


def is_busy() -> bool:
    """Whether any run is running or queued."""
    counts = store().counts()
    return counts["running"] + counts["queued"] > 0


def service() -> Service:
    """The service with this visitor's permissions. Pages write only through it, never to the store."""
    return service_of(visitor.current())


def service_of(asking: Visitor) -> Service:
    """The service with the permissions of a request's visitor."""
    from isoviz.operations.access.service import Service

    return Service(store(), asking, _policy())


def _policy() -> Policy:
    return policy.read(AllowedHosts.from_environment(st.get_option("server.address")))


def guard_files() -> None:
    """Restrict this process to data and models below the operator's roots, and to uploads."""
    allowed_paths.restrict_to(_roots)


def _roots() -> Roots:
    return uploads.roots(_policy(), store().folder)


def runner() -> Runner | None:
    """The store's runner, started, and rebuilt if it died. None if `ISOVIZ_RUNNER=off` (tests, displays)."""
    if os.environ.get("ISOVIZ_RUNNER", "on").lower() == "off":
        return None
    from isoviz.runs.runner import Runner

    url = _url()
    with _lock:
        running = _runners.get(url)
        if running is None or not running.is_alive:
            running = Runner(store(), None)
            running.start()
            _runners[url] = running
        return running


def begin() -> None:
    """Called when the app starts to serve: runs queued work, and keeps a prepared worker ready when a page expects work."""
    global _job_service
    guard_files()
    # import all modules whose jobs this app serves
    from isoviz.exploring.jobs import VIEW
    from isoviz.jobs.service import JobService
    from isoviz.runs import pretrained  # noqa: F401
    from isoviz.studies import jobs as study_jobs  # noqa: F401
    from isoviz.whatif import embeddings, engine, export, texts  # noqa: F401

    make_private(home())  # contains views and caches, even if the runs are elsewhere
    _job_service = JobService(VIEW.prepare)
    _job_service.start()
    runner()


def expect_jobs() -> None:
    """Keep a prepared worker ready, because this visitor may start a job from this page. No effect without a running app."""
    if _job_service is not None and service().refusal() is None:
        _job_service.expect()


def expect_runs() -> None:
    """Keep a prepared worker ready, because runs are launched from this page. No effect without a running app."""
    running = runner() if _job_service is not None else None
    if running is not None:
        running.expect()


def close() -> None:
    """Stop all runners and the service. Runs continue in their own processes, and the next app adopts them; with
    `ISOVIZ_RELEASE_RUNS=1`, for containers, where no process outlives the server, they are saved and queued again."""
    global _job_service
    if _job_service is not None:
        _job_service.close()
        _job_service = None
    with _lock:
        for running in _runners.values():
            if switched_on("ISOVIZ_RELEASE_RUNS"):
                running.release()
            running.close()
        _runners.clear()
        _stores.clear()
