"""Addresses and forged fields of visitors who mean harm: nothing of an address is drawn as more than text, and read-only is read-only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.shared import menu
from isoviz import vectors
from isoviz.home import home
from isoviz.jobs import queue
from isoviz.runs.store import Store
from tests.dashboard.conftest import OpenPage
from tests.dashboard.made_up import config, finish
from tests.story import Story

HOSTILE = "https://evil.example/ joe@evil.example :material/lock: <img src=x onerror=alert(1)> ![x](//evil.example) [a](b) :red[c]"
LIVE = re.compile(r"https?\\?://evil|\w\\?@evil|:material/lock|(?<!\\)<img|(?<!\\)!\[x|(?<!\\)\]\((?!\))|(?<!\\):red\[")
"""What Streamlit draws as a link, an icon, a picture or a colour; escapes keep it from the last four only."""
PARAMETERS = {
    "experiments": ("experiment",),
    "explore": ("explore_either", "explore_model", "explore_point", "explore_lasso", "explore2_model"),
    "home": ("preset",),
    "lessons": ("class", "lesson"),
    "live": ("run", "group", "id", "replay"),
    "methods": ("method",),
    "papers": ("study", "paper"),
    "playground": ("class",),
    "run": ("id",),
    "train": ("preset", "train_models", "train_tasks", "train_methods", "train_data.own"),
    "whatif": ("run", "chain", "cloud", "whatif_either", "set"),
    "ruler": ("ruler_either", "ruler_model", "set"),
}


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "_start_next", lambda: None)


def drawn(page: AppTest) -> Iterator[str]:
    """All text that the page gives to Streamlit as Markdown."""
    assert not page.exception, page.exception[0].message
    for node in (*page.main, *page.sidebar):
        for name in ("body", "label", "help"):
            text = getattr(node.proto, name, "") if hasattr(node, "proto") else ""
            if isinstance(text, str) and node.type not in ("code", "text"):
                yield text


@pytest.mark.parametrize("name", sorted(path.stem for path in (Path(menu.__file__).parents[2] / "pages").glob("*.py")))
def test_an_address_is_drawn_as_text(name: str, open_page: OpenPage, store: Store) -> None:
    run = finish(store, config("baseline", 0), 0.5, 0.5)
    page = open_page(name, run=run, id=run)
    fields = {str(node.key) for node in page.main if getattr(node, "key", None)}
    for query in (dict.fromkeys(fields, HOSTILE), *({one: HOSTILE} for one in PARAMETERS.get(name, ()))):
        page = open_page(name, **query)
        assert [text for text in drawn(page) if LIVE.search(text)] == [], query


@pytest.mark.parametrize("name", ["live", "run", "experiments"])
def test_names_and_tags_are_drawn_as_text(name: str, open_page: OpenPage, store: Store) -> None:
    run = finish(store, config("baseline", 0), 0.5, 0.5, group=HOSTILE)
    store.rename(run, HOSTILE)
    store.tag(run, ["joe@evil.example", ":material/lock:"])
    store.note(run, HOSTILE)
    texts = list(drawn(open_page(name, run=run, id=run, experiment=HOSTILE)))
    assert [text for text in texts if LIVE.search(text)] == []


def forge(page: AppTest) -> None:
    """Send what an attacker's browser can: a text in each field, a file in each upload, a click of each button, also of disabled ones."""
    for kind, value in (
        ("text_input", "evil"),
        ("text_area", "evil"),
        ("file_uploader", ("x.csv", b"text\na\n", "text/csv")),
    ):
        for field in page.get(kind):
            field.proto.disabled = False
            field.set_value(value)
    page.run()
    for key in [button.key for button in page.get("button") if button.key]:
        if key in {button.key for button in page.get("button")}:
            button = page.button(key=key)
            button.proto.disabled = False
            button.click().run()
            assert not page.exception, page.exception[0].message


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("live", {"group": "sweep"}),
        ("whatif", {**menu.WHATIF_OWN, "whatif_either": "{key}", "chain": "zca:strength=0.5"}),
        ("ruler", {"ruler_set": menu.OWN_SET, "ruler_either": "{key}"}),
        ("ruler", {"ruler_set": menu.OWN_SET, "ruler_own.either.from": "Paste"}),
    ],
)
def test_forged_fields_change_nothing_in_read_only(
    name: str, query: dict[str, str], open_page: OpenPage, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished, waiting = finish(store, config("baseline", 0), 0.5, 0.5, group="sweep"), Story(store, claim=False).id
    key = vectors.keep(vectors.from_texts(["a cat sat", "a dog ran", "a bird flew"]))

    def state() -> object:
        files = {path: path.stat().st_size for path in home().rglob("*") if not path.name.startswith("isoviz.db")}
        return files, repr(store.list()), dict(queue._entries)

    before = state()
    monkeypatch.setenv("ISOVIZ_READ_ONLY", "1")
    for run in (finished, waiting):
        forge(open_page(name, run=run, **{field: value.format(key=key) for field, value in query.items()}))
    assert state() == before
