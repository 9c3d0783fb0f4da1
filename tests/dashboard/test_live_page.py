"""The Live page: empty, waiting, running, stopping, failed, unknown, several at once."""

from __future__ import annotations

import json

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.live import queue as run_queue
from dashboard.live import sections as live
from isoviz.config import RunConfig
from isoviz.devices import Devices, Slot
from isoviz.events import Failed, Stopped
from isoviz.runs.store import Store
from tests.dashboard.conftest import OpenPage
from tests.dashboard.made_up import config, finish
from tests.dashboard.reading import texts
from tests.story import Story


def buttons(app: AppTest) -> list[str]:
    return [button.label for button in app.button]


def shown_runs(app: AppTest) -> list[str]:
    """The runs that the live lines draw."""
    data = json.loads(app.get_by_key("live-lines").proto.json)
    return [run["id"] for run in data["runs"]]


def test_running_and_waiting_runs_show_their_progress(store: Store, open_page: OpenPage) -> None:
    run = Story(store, method="baseline").begin().walk(1, 12)
    waiting = [Story(store, claim=False, seed=seed, params={"lam": 1.0}) for seed in (1, 2)]
    app = open_page("live")
    assert not app.exception
    assert "step 12 of 160" in texts(app)
    assert "next in the queue" in texts(app)
    assert "number 2 in the queue" in texts(app)
    assert shown_runs(app) == [run.id]
    assert buttons(app).count("Cancel") == len(waiting)
    assert "Stop" in buttons(app)
    assert "Stop all waiting runs" in buttons(app)


def test_stop_is_requested_once_and_counts_the_seconds(store: Store, open_page: OpenPage) -> None:
    run = Story(store).begin().walk(1, 3)
    app = open_page("live")
    app.button(key="stop-chosen").click().run()
    assert store.signals(run.id).stop
    stopping = app.button(key="stop-chosen")
    assert stopping.disabled and stopping.label.startswith("Stopping … ")


def test_a_run_is_chosen_by_address_experiment_and_click(store: Store, open_page: OpenPage) -> None:
    first = Story(store).begin()
    second = Story(store, seed=1).begin()
    launched = Story(store, seed=2, claim=False, group="mine").id
    assert shown_runs(open_page("live")) == [second.id]  # the newest running one
    assert shown_runs(open_page("live", group="mine")) == [launched]
    app = open_page("live", run=first.id)
    assert shown_runs(app) == [first.id]
    app.button(key=f"watch-{second.id}").click().run()
    assert shown_runs(app) == [second.id]
    assert app.query_params["run"] == second.id


def test_without_a_choice_the_page_moves_on_with_the_queue(store: Store, open_page: OpenPage) -> None:
    first = Story(store)
    first.begin().walk(1, 2)
    app = open_page("live")
    assert shown_runs(app) == [first.id]
    first.say(Stopped(step=0))
    second = Story(store, seed=1).begin()
    assert shown_runs(app.run()) == [second.id]


def test_a_failed_run_shows_advice_as_text_and_can_be_resumed(store: Store, open_page: OpenPage) -> None:
    run = Story(store).begin().walk(1, 2)
    run.say(Failed(error="RuntimeError", message="<b>out of memory</b> in *layer*", advice="Use a smaller batch."))
    app = open_page("live")
    assert app.error[0].value == ("**Failed:** \\<b\\>out of memory\\</b\\> in \\*layer\\*  \nUse a smaller batch\\.")
    app.button(key="resume").click().run()
    assert not app.exception
    assert store.get(run.id).status == "queued"
    assert not app.error


def test_runs_launched_together_can_be_overlaid(store: Store, open_page: OpenPage) -> None:
    runs = [Story(store, group="g", seed=seed).begin() for seed in range(live.OVERLAID + 2)]
    app = open_page("live", run=runs[0].id)
    assert shown_runs(app) == [runs[0].id]
    app.toggle(key="overlay").set_value(True).run()
    assert len(shown_runs(app)) == live.OVERLAID
    assert shown_runs(app)[0] == runs[0].id
    assert "of the other 9" in texts(app)


def test_a_finished_experiment_says_what_it_shows_and_takes_more_seeds(store: Store, open_page: OpenPage) -> None:
    finish(store, config("baseline"), 0.75, 0.25, group="demo")
    (waiting,) = store.create([config("isobn")], group="demo")
    assert [button for button in open_page("live", group="demo").button if button.key == "experiment_more"] == []
    store.delete(waiting)
    finish(store, config("isobn"), 0.6875, 0.25, group="demo")
    page = open_page("live", group="demo")
    assert "IsoBN β = 0.5 − Baseline: −0.062, 1 paired seed: not enough seeds" in texts(page).replace("\\", "")
    page.button(key="experiment_more").click().run()
    assert not page.exception
    queued = {(row.config.method, row.config.seed) for row in store.list(status="queued", group="demo")}
    assert queued == {(method, seed) for method in ("baseline", "isobn") for seed in (1, 2, 3, 4)}


def test_the_sidebar_leads_back_to_what_runs(store: Store, open_page: OpenPage) -> None:
    run = Story(store).complete()
    Story(store, seed=1).begin()
    Story(store, seed=2, claim=False)
    app = open_page("run", id=run.id)
    assert "1 running · 1 queued" in [link.value for link in app.sidebar.page_link]


def test_a_run_too_wide_for_this_machine_says_what_it_waits_for(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow, wide = store.create([RunConfig(), RunConfig(processes=4)])
    assert run_queue._activity_text(store.get(wide)) == "number 2 in the queue", "a CPU trains any number of processes"
    two = Devices((Slot("cuda:0", "GPU", 1), Slot("cuda:1", "GPU", 1)), True, 8)
    monkeypatch.setattr("isoviz.devices.describe", lambda: two)
    assert run_queue._activity_text(store.get(narrow)) == "next in the queue"
    assert run_queue._activity_text(store.get(wide)).endswith(" · needs a machine with 4 GPUs, this one has 2")
