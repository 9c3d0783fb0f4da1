"""A run whose record is damaged: every page opens, names it and offers to delete it; the tables work without it."""

from __future__ import annotations

import pytest

from isoviz.runs.store import Store
from tests.dashboard.conftest import OpenPage
from tests.dashboard.made_up import config, finish
from tests.runs.test_summaries import damage

PAGES = ("home", "results")


@pytest.fixture
def damaged(store: Store) -> str:
    """The id of the newest of three runs."""
    *_, bad = [finish(store, config(seed=seed), 0.5, 0.25, group="g") for seed in range(3)]
    damage(store, bad, "config")
    return bad


@pytest.mark.parametrize("page", PAGES)
def test_every_page_lists_it_as_unreadable(open_page: OpenPage, damaged: str, page: str) -> None:
    shown = open_page(page)
    assert not shown.exception
    assert any("1 run of this store cannot be read" in text.value for text in shown.markdown)
    assert any("unreadable" in text.value for text in shown.markdown)
    assert any(damaged.replace("-", r"\-") in text.value for text in shown.markdown)


@pytest.mark.parametrize(("page", "query"), [("run", "id"), ("live", "run"), ("whatif", "run")])
def test_its_own_address_says_why(open_page: OpenPage, damaged: str, page: str, query: str) -> None:
    shown = open_page(page, **{query: damaged})
    assert not shown.exception
    elements = [*shown.error, *shown.warning, *shown.markdown, *shown.caption]
    assert any("configuration is not valid" in text.value for text in elements)


def test_it_is_deleted_from_any_page(open_page: OpenPage, store: Store, damaged: str) -> None:
    page = open_page("results")
    page.button(key=f"delete-unreadable-{damaged}").click().run()
    assert not page.exception and store.unreadable() == []
    assert not any("cannot be read" in text.value for text in page.markdown)
    assert len(store.list()) == 2
