"""What a viewer and a runner see, and that a page does nothing for them that the service refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.shared import visitor
from isoviz.exploring.jobs import VIEW
from isoviz.jobs import queue
from isoviz.operations.access.visitors import Role, Visitor
from isoviz.runs.store import Store
from tests.dashboard.conftest import OpenPage
from tests.dashboard.made_up import config, finish
from tests.story import Story

LOOKER, ANNA = Visitor("lena", Role.VIEWER), Visitor("anna", Role.RUNNER)
OUTSIDE = "cannot be read from the browser; ask the operator to add yours to ISOVIZ_ROOTS"
PAGES = ("home", "train", "whatif")


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch) -> Callable[[Visitor], None]:
    """`visit(ANNA)`: Anna views the pages from now on."""

    def come(who: Visitor) -> None:
        monkeypatch.setattr(visitor, "current", lambda: who)

    return come


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs wait; no process is started for them."""
    monkeypatch.setattr(queue, "_start_next", lambda: None)


def shown(app: AppTest) -> str:
    assert not app.exception, app.exception[0].message
    kinds = ("title", "markdown", "caption", "error", "info", "warning", "text")
    return "\n".join(str(element.value) for kind in kinds for element in getattr(app, kind)).replace("\\", "")


def disabled(app: AppTest) -> dict[str, bool]:
    return {str(button.key or button.label): button.disabled for button in app.button}


def press(app: AppTest, key: str) -> AppTest:
    """Click, as an attacker's browser does, whether the button is disabled or not."""
    button = app.button(key=key)
    button.proto.disabled = False
    return button.click().run()


@pytest.mark.parametrize("name", PAGES)
def test_every_page_says_once_that_it_is_read_only(
    name: str, open_page: OpenPage, visit: Callable[[Visitor], None], monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    query = {"id": finish(store, config("baseline", 0), 0.5, 0.5)}
    assert "read-only" not in (operators := shown(open_page(name, **query))) and "only allows viewing" not in operators
    visit(LOOKER)
    assert shown(open_page(name, **query)).count("Your link only allows viewing") >= 1
    monkeypatch.setenv("ISOVIZ_READ_ONLY", "1")
    assert "This server is read-only" in shown(open_page(name, **query))


@pytest.mark.parametrize("read_only", [False, True])
def test_the_train_page_can_be_read_but_not_launched(
    read_only: bool,
    open_page: OpenPage,
    visit: Callable[[Visitor], None],
    monkeypatch: pytest.MonkeyPatch,
    store: Store,
) -> None:
    if read_only:
        monkeypatch.setenv("ISOVIZ_READ_ONLY", "1")
    else:
        visit(LOOKER)
    page = open_page("train", preset="demo")
    launch = page.button(key="launch")
    assert launch.label == "Launch 3 runs" and launch.disabled
    assert ("read-only" if read_only else "only allows viewing") in launch.help.replace("\\", "")
    assert any(code.value.startswith("python -m isoviz") for code in page.code), "the command can be taken along"
    press(page, "launch")
    assert store.list() == []


def test_buttons_on_other_users_runs_are_disabled(
    open_page: OpenPage, visit: Callable[[Visitor], None], store: Store
) -> None:
    operators = Story(store, claim=False).id
    (annas,) = store.create([config("baseline", 1)], visitor="anna")
    visit(ANNA)
    buttons = disabled(open_page("live", run=operators))
    assert buttons["stop-chosen"] and not buttons[f"stop-{annas}"]
    page = open_page("live", run=operators)
    press(page, "stop-chosen")
    assert store.get(operators).status == "queued"
    page.button(key=f"stop-{annas}").click().run()
    assert store.get(annas).status == "stopped"
    visit(LOOKER)
    assert disabled(open_page("live", run=operators))["stop-chosen"]


def test_a_runner_launches_what_is_theirs(
    open_page: OpenPage, visit: Callable[[Visitor], None], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    visit(ANNA)
    page = open_page("train", preset="demo")
    page.button(key="launch").click().run()
    assert [row.visitor for row in store.list()] == ["anna"] * 3
    monkeypatch.setenv("ISOVIZ_QUOTA_QUEUED", "5")
    page = open_page("train", preset="demo", train_again="true")
    assert page.button(key="launch").disabled
    assert "queued runs of one visitor: 6 (at most 5" in shown(page)


def test_own_data_outside_the_roots(
    open_page: OpenPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    """The address that shows any table of the server's account."""
    for name in ("shared", "private"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.csv").write_text("text,label\nthe secret row,1\nanother,0\n")
    (tmp_path / "shared" / "link.csv").symlink_to(tmp_path / "private" / "x.csv")
    monkeypatch.setenv("ISOVIZ_ROOTS", str(tmp_path / "shared"))
    address = {"train_tasks": "Own data"}
    inside = open_page("train", **address, **{"train_data.own": str(tmp_path / "shared" / "x.csv")})
    assert OUTSIDE not in shown(inside) and any("the secret row" in str(table.value) for table in inside.dataframe)
    for path in ("private/x.csv", "private/none.csv", "shared/../private/x.csv", "shared/link.csv", "private"):
        page = open_page("train", **address, **{"train_data.own": str(tmp_path / path)})
        assert OUTSIDE in shown(page), path
        assert not any("secret" in str(table.value) for table in page.dataframe)
        assert page.button(key="launch").disabled


def test_a_viewer_computes_no_view(open_page: OpenPage, visit: Callable[[Visitor], None]) -> None:
    visit(LOOKER)
    page = open_page("explore")
    assert page.button(key="explore_look").disabled
    press(page, "explore_look")
    assert not page.exception and not queue._entries
    uploads = {"explore_task": "glue/cola", "explore_from.glue/cola": "Upload"}
    assert [field.disabled for field in open_page("explore", **uploads).file_uploader] == [True, True]
    visit(ANNA)
    page = open_page("explore")
    page.button(key="explore_look").click().run()
    (entry,) = queue._entries.values()
    assert (entry.kind, entry.state.status, entry.visitor) == (VIEW, "waiting", "anna")


def test_a_viewer_does_not_make_the_server_ask_the_hub(
    open_page: OpenPage, visit: Callable[[Visitor], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dashboard.inputs import model_form

    requests: list[str] = []
    monkeypatch.setattr(
        model_form, "_resolved_cached", lambda name, heads, offline: requests.append(name) or (None, "asked")
    )
    visit(LOOKER)
    page = open_page("explore", explore_model="some/encoder")
    assert "'some/encoder' is not on this machine" in shown(page) and requests == []
    visit(ANNA)
    open_page("explore", explore_model="some/encoder")
    assert requests
