"""Pages without a browser: a store of the test's own, no runner, Streamlit's AppTest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard import explore, resources
from isoviz.runs.store import Store

ROOT = Path(__file__).resolve().parents[2]
OpenPage = Callable[..., AppTest]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The store that the pages of this test read."""
    monkeypatch.setenv("ISOVIZ_RUNNER", "off")
    yield resources.store()
    resources.close()


@pytest.fixture(autouse=True)
def no_browser_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Explore's tables come at once."""
    monkeypatch.setattr(explore, "TABLES_AFTER", 0.0)


def drawn(page: AppTest) -> list[dict[str, Any]]:
    """What `components.figure` was given, figure by figure, in the order of the page."""
    found = [json.loads(element.proto.json) for element in page.get("bidi_component") if element.proto.json]
    return [json.loads(data["spec"]) for data in found if "spec" in data]


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
