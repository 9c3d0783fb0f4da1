"""Watched trainings on Live: which are shown, to whom, in which state, and the route that their curves follow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from dashboard.server import announcing, routes
from dashboard.shared import menu, resources, watched
from isoviz import allowed_paths, demo
from isoviz.__main__ import main
from isoviz.commands import app as app_command
from isoviz.runs.store import Store
from isoviz.watch import Watch, trainings
from isoviz.watch.trainings import Measured
from tests.dashboard.conftest import OpenPage
from tests.dashboard.reading import texts
from tests.ports import free_port
from tests.story import Story

EXAMPLES = ["example-collapsing", "example-healthy"]


def train(store: str | Path | bool = True, steps: int = 30, name: str = "mine", collapse: bool = False) -> Watch:
    """A training whose file is in the app's own folder, or elsewhere."""
    generator = np.random.default_rng(0)
    watch = Watch(store=store, warmup=5, measure_every=5, name=name, on_collapse="log")
    for step in range(steps):
        batch = generator.standard_normal((16, 8))
        if collapse and step > 8:
            batch[:, 1:] *= 1e-3
        watch.step(batch)
    return watch


def key_of(watch: Watch) -> str:
    return next(key for key, one in watched.found().trainings.items() if one.file == watch.file)


def mounted(app: AppTest) -> dict[str, Any]:
    """What the live lines of a watched training draw."""
    data: dict[str, Any] = json.loads(app.get_by_key("live-watched").proto.json)
    return data


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of `isoviz app FOLDER`."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.setenv(trainings.FOLDER, str(folder))
    return folder


def test_trainings_are_listed_with_their_state_and_last_measures(open_page: OpenPage, elsewhere: Path) -> None:
    going = train(name="going *on*")
    done = train(elsewhere, name="done")
    done.end()
    fallen = train(elsewhere, name="fallen", collapse=True)
    assert fallen.alarm is not None
    app = open_page("live")
    assert not app.exception
    shown = texts(app)
    assert "**fallen**" in shown  # the newest, because there is no run to show
    names = {button.label for button in app.button if (button.key or "").startswith("watched-")}
    assert names == {"going \\*on\\*", "done"}
    for state in ("collapsed at step", "training]", "ended]"):
        assert state in shown
    assert f"collapsed at step {fallen.alarm.step}" in shown
    last = next(iter(reversed(watched.found().trainings[key_of(done)].all_of(Measured))))
    assert f"step 30 · IsoScore {last.values['isoscore_unbiased']:.3f}" in shown and "n = 480, d = 8" in shown
    assert mounted(app)["runs"][0]["id"] == key_of(fallen)
    assert key_of(going) != key_of(done)


def test_a_training_is_selected_by_click_and_by_address(store: Store, open_page: OpenPage, elsewhere: Path) -> None:
    first, second = train(elsewhere, name="first"), train(elsewhere, name="second")
    run = Story(store).begin()
    app = open_page("live")
    assert app.get_by_key("live-lines") is not None  # an own run comes first
    app.button(key=f"watched-{key_of(first)}").click().run()
    assert app.query_params[menu_key()] == key_of(first) and mounted(app)["runs"][0]["label"] == "first"
    app = open_page("live", **{menu_key(): key_of(second), "replay": "20"})
    assert mounted(app)["runs"][0]["label"] == "second" and mounted(app)["replay"] == 20
    next(button for button in app.button if button.label == "Show the runs").click().run()
    assert menu_key() not in app.query_params
    assert json.loads(app.get_by_key("live-lines").proto.json)["runs"][0]["id"] == run.id


def menu_key() -> str:
    return next(iter(menu.WATCHED))


def test_the_examples_are_real_trainings_and_are_hidden_with_the_others(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOVIZ_EXAMPLES", "on")
    found = watched.found().trainings
    assert list(found) == EXAMPLES
    collapsing, healthy = found.values()
    assert collapsing.collapse is not None and collapsing.collapse.collapse == "alike" and healthy.collapse is None
    for one in (collapsing, healthy):
        assert one.state() == "ended" and {"isoviz", "sentence_transformers", "torch"} <= set(one.started.versions)
        last = one.all_of(Measured)[-1]
        assert (last.n, last.d, last.missing) == (one.started.window, 128, {}) and last.step == one.step
        assert {measure["slug"] for measure in mounted(open_page("live", **menu.WATCHED))["watched"]} <= set(
            last.values
        )
    assert sum(path.stat().st_size for path in demo.WATCHED.iterdir()) < 200_000
    app = open_page("live", **menu.WATCHED)
    assert mounted(app)["runs"][0]["id"] == EXAMPLES[0] and "example" in texts(app)
    watch = train(name="own")
    assert "**own**" in texts(open_page("live")) and "example" not in texts(open_page("live"))
    assert mounted(open_page("live", **menu.WATCHED))["runs"][0]["label"] == "own"
    app.toggle(key="examples").set_value(False).run()
    assert not app.exception and watched.find(EXAMPLES[0]) is not None  # routes serve every visitor
    assert mounted(app)["runs"][0]["label"] == "own" and "example" not in texts(app)
    monkeypatch.setenv("ISOVIZ_EXAMPLES", "off")
    assert list(watched.found().trainings) == [key_of(watch)] and watched.find(EXAMPLES[0]) is None


def test_a_file_outside_the_readable_folders_is_not_shown(
    open_page: OpenPage, elsewhere: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    train(elsewhere / "inside.jsonl", name="inside")
    monkeypatch.setenv("ISOVIZ_ROOTS", str(elsewhere))
    outside = train(tmp_path / "outside.jsonl", name="outside")
    assert outside.file is not None
    (elsewhere / "link.jsonl").symlink_to(outside.file)
    app = open_page("live")
    assert "**inside**" in texts(app) and "outside**" not in texts(app)
    assert [one.started.name for one in watched.found().trainings.values()] == ["inside"]
    (problem,) = watched.found().problems
    assert "cannot be read from the browser" in problem and str(outside.file) not in problem
    monkeypatch.setenv("ISOVIZ_ROOTS", str(tmp_path / "home"))
    assert watched.found().trainings == {}
    assert allowed_paths.roots() is not None


# --------------------------------------------------------------------------------------------------------------- route


@pytest.fixture
def client(store: Store) -> TestClient:
    resources.guard_files()
    return TestClient(Starlette(routes=routes.routes()))


def test_lines_come_after_the_cursor_while_the_file_grows(client: TestClient) -> None:
    watch = train(steps=10)
    path = f"/isoviz/watched/{key_of(watch)}"
    first = client.get(path).json()
    assert [(seq, event["kind"], event["epoch"]) for seq, event in first["rows"]] == [
        (1, "started", None),
        (2, "measured", 5),
        (3, "measured", 10),
    ]
    assert (first["status"], first["ended"], first["more"]) == ("running", None, False)
    assert client.get(path, params={"after": 3}).json()["rows"] == []
    for step in range(5):
        watch.step(np.eye(8) + step)
    watch.end()
    later = client.get(path, params={"after": 3}).json()
    assert [(seq, event["kind"]) for seq, event in later["rows"]] == [(4, "measured"), (5, "ended")]
    assert later["status"] == "finished" and later["ended"] >= later["started"]


@pytest.mark.parametrize("key", ["x", "..", "%2e%2e%2fhome", "%00", "example-nothing"])
def test_no_key_leads_to_another_file(client: TestClient, key: str) -> None:
    train()
    assert client.get(f"/isoviz/watched/{key}").status_code == 404


# ------------------------------------------------------------------------------------------------------------- command


class Served(Exception):  # noqa: N818 — no error
    """The environment with which the server would start."""


def test_the_app_opens_on_a_folder(monkeypatch: pytest.MonkeyPatch, elsewhere: Path) -> None:
    def serve(program: str, command: list[str], environment: dict[str, str]) -> None:
        raise Served(environment)

    assert announcing._first_page() == ("live", menu.WATCHED)
    monkeypatch.delenv(trainings.FOLDER)
    monkeypatch.chdir(elsewhere.parent)
    monkeypatch.setattr(app_command.os, "execve", serve)
    monkeypatch.setattr(app_command.os, "chdir", lambda folder: None)
    with pytest.raises(Served) as served:
        main(["app", "elsewhere", "--headless", "--port", str(free_port())])
    assert served.value.args[0][trainings.FOLDER] == str(elsewhere)
