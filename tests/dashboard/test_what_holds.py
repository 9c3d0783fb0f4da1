"""The downloadable runs of docs/what-holds.md open in the app."""

from __future__ import annotations

import zipfile

import pytest

from dashboard.results.sections import LISTED
from factory.record_what_holds import GROUPS, PACKED, SMALL
from isoviz.home import home, make_private
from isoviz.runs.store import Store
from tests.dashboard.conftest import OpenPage


@pytest.fixture
def downloaded() -> None:
    make_private(home())
    with zipfile.ZipFile(PACKED) as archive:
        archive.extractall(home())


def test_an_unpacked_download_is_a_store_that_pages_show(downloaded: None, open_page: OpenPage, store: Store) -> None:
    page = open_page("experiments", experiment=GROUPS[SMALL])
    assert not page.exception and page.title[0].value.replace("\\", "") == GROUPS[SMALL]
    runs = store.list(group=GROUPS[SMALL])
    assert len(page.dataframe[-1].value) == min(LISTED, len(runs)) > 0
