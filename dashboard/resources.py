"""What the whole process shares: the store, the runner, and a spare process for views.

They live at module level and not in Streamlit's resource cache, which anybody may clear and which hot reload fills a
second time; the truth is in the store anyway, and a runner can be built again at any time.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from isoviz.home import store_url

if TYPE_CHECKING:
    from isoviz.runs.runner import Runner
    from isoviz.runs.store import Store

_lock = threading.RLock()
_stores: dict[str, Store] = {}
_runners: dict[str, Runner] = {}
_serving = threading.Event()


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


def runner() -> Runner | None:
    """The runner of that store, started; built anew if it died. None if `ISOVIZ_RUNNER=off` (tests, displays)."""
    if os.environ.get("ISOVIZ_RUNNER", "on").lower() == "off":
        return None
    from isoviz.runs.runner import Runner

    url = _url()
    with _lock:
        found = _runners.get(url)
        if found is None or not found.is_alive:
            found = Runner(store(), None)
            found.start()
            _runners[url] = found
        return found


def begin() -> None:
    """The app serves from now on: it runs what is queued, and has a spare ready where a page expects work."""
    _serving.set()
    runner()


def expect_views() -> None:
    """Somebody looks at a page that computes in processes: the next one shall begin at once. Nothing where no app serves."""
    if _serving.is_set():
        from isoviz.exploring import results, starting

        starting.expect(results.root() / "spare.log")


def close() -> None:
    """Stop every runner, not the runs: those have their own processes, which the next runner adopts. The spare ends."""
    if _serving.is_set():
        from isoviz.exploring import starting

        _serving.clear()
        starting.close()
    with _lock:
        for found in _runners.values():
            found.close()
        _runners.clear()
        _stores.clear()
