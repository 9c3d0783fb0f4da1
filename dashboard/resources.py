"""What the whole process shares: the store, the runner, and the service of the jobs that pages ask for.

They live at module level and not in Streamlit's resource cache, which anyone may clear and which hot reload fills a
second time; the truth is in the store anyway, and a runner can be built again at any time.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import streamlit as st

from dashboard import examples, visitor
from isoviz import fence
from isoviz.access import policy, uploads
from isoviz.access.policy import Policy
from isoviz.access.reach import Reach
from isoviz.fence import Roots
from isoviz.home import home, make_private, store_url

if TYPE_CHECKING:
    from isoviz.access.service import Service
    from isoviz.access.visitors import Visitor
    from isoviz.jobs.service import JobService
    from isoviz.runs.examples import Library
    from isoviz.runs.runner import Runner
    from isoviz.runs.store import Store

_lock = threading.RLock()
_stores: dict[str, Store] = {}
_runners: dict[str, Runner] = {}
_job_service: JobService | None = None


def _url() -> str:
    """The store this app shows: `ISOVIZ_STORE` (a URL or folder, from `isoviz app --store`), else that of `ISOVIZ_HOME`."""
    return store_url(os.environ.get("ISOVIZ_STORE") or None)


def store() -> Store:
    """That store, opened once per process."""
    from isoviz.runs.store import Store

    url = _url()
    with _lock:
        if url not in _stores:
            _stores[url] = Store(url)
        return _stores[url]


def library() -> Library:
    """What this visitor reads: the store's runs, and the examples unless they are hidden."""
    from isoviz.runs.examples import Library, opened

    return Library(store(), opened() if examples.shown() else None)


def every_run() -> Library:
    """The same with every example, for routes: their tokens say which runs a page shows."""
    from isoviz.runs.examples import Library, opened

    return Library(store(), opened())


def service() -> Service:
    """What the visitor of this page may change and start there. Pages write through it, never to the store itself."""
    return service_of(visitor.current())


def service_of(asking: Visitor) -> Service:
    """The same for who sent a request to a route."""
    from isoviz.access.service import Service

    return Service(store(), asking, _policy())


def _policy() -> Policy:
    return policy.read(Reach.from_environment(st.get_option("server.address")))


def guard_files() -> None:
    """From now on this process reads data and models only below the operator's roots, and uploads."""
    fence.hold_to(_roots)


def _roots() -> Roots:
    return uploads.roots(_policy().roots or (), store().folder)


def runner() -> Runner | None:
    """The runner of that store, started; built anew if it died. None if `ISOVIZ_RUNNER=off` (tests, displays)."""
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
    """The app serves from now on: it runs what is queued, and has a spare ready where a page expects work."""
    global _job_service
    guard_files()
    # every room whose jobs this app serves
    from isoviz.exploring.jobs import VIEW
    from isoviz.jobs.service import JobService
    from isoviz.runs import pretrained  # noqa: F401
    from isoviz.studies import jobs as study_jobs  # noqa: F401
    from isoviz.whatif import export, jobs, texts  # noqa: F401

    make_private(home())  # views and caches lie there, wherever the runs are
    _job_service = JobService(VIEW.prepare)
    _job_service.start()
    runner()


def expect_jobs() -> None:
    """Someone who may start jobs looks at a page for it: the next one shall begin at once. Nothing where no app serves."""
    if _job_service is not None and service().refusal() is None:
        _job_service.expect()


def expect_runs() -> None:
    """Someone looks at a page from which runs are launched: the next one shall begin at once. Nothing where no app serves."""
    running = runner() if _job_service is not None else None
    if running is not None:
        running.expect()


def close() -> None:
    """Stop every runner and the service. Runs go on in their own processes, which the next app finds."""
    global _job_service
    if _job_service is not None:
        _job_service.close()
        _job_service = None
    with _lock:
        for running in _runners.values():
            running.close()
        _runners.clear()
        _stores.clear()
