"""A run whose record is damaged: every page opens, names it; the tables work without it."""

from __future__ import annotations

import pytest

from isoviz.runs.store import Store
from tests.dashboard.conftest import OpenPage
from tests.dashboard.made_up import config, finish
from tests.runs.test_summaries import damage


@pytest.fixture
def damaged(store: Store) -> str:
    """The id of the newest of three runs."""
    *_, bad = [finish(store, config(seed=seed), 0.5, 0.25, group="g") for seed in range(3)]
    damage(store, bad, "config")
    return bad


def test_every_page_names_it(open_page: OpenPage, damaged: str) -> None:
    shown = open_page("results")
    assert not shown.exception
    (warning,) = (box.value for box in shown.warning if "1 run of this store cannot be read" in box.value)
    assert damaged.replace("-", r"\-") in warning and "isoviz runs delete" in warning


@pytest.mark.parametrize(("page", "query"), [("run", "id"), ("live", "run"), ("whatif", "run")])
def test_its_own_address_says_why(open_page: OpenPage, damaged: str, page: str, query: str) -> None:
    shown = open_page(page, **{query: damaged})
    assert not shown.exception
    elements = [*shown.error, *shown.warning, *shown.markdown, *shown.caption]
    assert any("configuration is not valid" in text.value for text in elements)
