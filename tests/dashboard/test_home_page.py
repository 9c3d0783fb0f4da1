"""Home: inviting on an empty store, a list of runs on a full one, numbers computed from the clouds it shows."""

from __future__ import annotations

from isoviz.runs.store import Store
from tests.dashboard.conftest import OpenPage
from tests.dashboard.reading import texts


def test_empty_store_names_the_button_to_click_and_leads_to_the_pages_that_answer(open_page: OpenPage) -> None:
    page = open_page("home")
    assert not page.exception
    assert page.title[0].value == "IsoViz"
    assert "No run yet. Start with the 60-second demo" in texts(page)
    assert [button.label for button in page.button] == [
        "Start these 3 runs",
        "Set up these 3 runs",
        "Set up these 24 runs",
        "Set up these 10 runs",
    ]
    links = [link.proto for link in page.get("page_link")]
    pages = {"live", "lessons", "methods", "explore", "whatif", "ruler", "train", "papers", "playground"}
    assert pages <= {link.page for link in links}
    page.button(key="card_isobn").click().run()
    assert not page.exception
    assert page.title[0].value == "Train" and page.text_input(key="train_seeds").value == "0 1 2 3 4"


def test_the_demo_starts_with_one_click(open_page: OpenPage, store: Store) -> None:
    page = open_page("home").button(key="start_demo").click().run()
    assert not page.exception and page.title[0].value == "Live"
    rows = store.list(order="oldest")
    assert [row.config.method for row in rows] == ["baseline", "isobn", "istar"]
    assert {row.status for row in rows} == {"queued"} and len({row.group for row in rows}) == 1
