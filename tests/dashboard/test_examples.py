"""A fresh store opens on the examples, and a visitor's own runs come before them."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.shared import choosing, examples
from isoviz.config import RunConfig
from isoviz.exploring import results
from isoviz.exploring.request import ViewRequest
from isoviz.runs.examples import METHODS, opened
from isoviz.runs.store import Store
from tests.dashboard.conftest import OpenPage
from tests.dashboard.reading import texts

PAGES = ("live", "experiments", "tradeoffs", "results", "whatif", "papers", "explore", "run")
EMPTY = ("No run yet", "No experiment yet", "then press Analyse", "First, the run's embeddings", "Reproduce first")


@pytest.fixture(autouse=True)
def _with_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOVIZ_EXAMPLES", "on")


@pytest.mark.parametrize("page", ["home", *PAGES])
def test_every_page_shows_labelled_examples_on_a_new_store(open_page: OpenPage, page: str) -> None:
    shipped = opened()
    assert shipped is not None
    app = open_page(page, **({"id": shipped.featured().id} if page == "run" else {}))
    assert not app.exception and not [text for text in EMPTY if text in texts(app)]
    content = texts(app) + " ".join(str(element.value) for element in app.selectbox) + " ".join(map(str, frames(app)))
    assert ("Recorded" if page == "papers" else "xample") in content, page


def frames(app: AppTest) -> list[str]:
    return [frame.value.to_csv() for frame in app.dataframe]


def test_your_own_runs_come_first_everywhere(open_page: OpenPage, store: Store) -> None:
    store.create([RunConfig.checked(model="demo/tiny-bert", task="demo/acceptability")], group="mine", name="my run")
    home, results_page, live = open_page("home"), open_page("results"), open_page("live")
    assert "Example runs" not in [element.value for element in home.header] and "1 queued" in texts(home)
    experiment = results_page.selectbox("results_group")
    assert experiment.value == "mine" and experiment.options[:3] == [choosing.ALL, "mine", METHODS]
    assert "Every run" in [element.value for element in results_page.header]
    assert examples.BADGE not in texts(live)


def test_the_view_that_ships_is_the_one_that_explore_asks_for_at_first() -> None:
    key = examples.view_of(ViewRequest("demo/tiny-bert", "demo/acceptability"))
    assert key is not None
    view = results.find(key)
    assert view is not None and view.points(view.depth, "cls").dtype == "float32"
    for pooling in view.poolings:
        assert all(len(view.table(pooling)) == view.stored_points(layer, pooling) for layer in range(view.depth + 1))
    assert examples.view_of(ViewRequest("demo/tiny-bert", "demo/sentiment")) is None
