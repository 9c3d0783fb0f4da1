"""Pages without a browser: a store of the test's own, no runner, Streamlit's AppTest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard import resources
from isoviz.runs.store import Store

ROOT = Path(__file__).resolve().parents[2]
OpenPage = Callable[..., AppTest]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The store that the pages of this test read."""
    monkeypatch.setenv("ISOVIZ_RUNNER", "off")
    yield resources.store()
    resources.close()


@pytest.fixture
def open_page(store: Store) -> OpenPage:
    """`open_page("live", run="…")`: the app at that page, with those query parameters; AppTest never runs the lifespan."""

    def opened(name: str, **query: str) -> AppTest:
        app = AppTest.from_file(ROOT / "dashboard" / "app.py", default_timeout=30).run()
        app.switch_page(str(ROOT / "pages" / f"{name}.py"))
        for key, value in query.items():
            app.query_params[key] = value
        return app.run()

    return opened
