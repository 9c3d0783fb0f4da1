"""A store that an earlier version wrote still opens: every event, every page, and its stopped run resumes."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard import tables
from isoviz.config import RunConfig
from isoviz.events import Event, Measured, Resumed, parse_event
from isoviz.home import DATABASE, home
from isoviz.runs.execution import execute
from isoviz.runs.store import Store
from tests.dashboard.reading import packages_scanned_once

OpenPage = Callable[..., AppTest]
Emit, ShouldStop = Callable[[Event], None], Callable[[], bool]
ROOT = Path(__file__).resolve().parents[1]
OLD = Path(__file__).parent / "old_store"
FINISHED, COLLAPSED, TRANSLATION, STOPPED = (
    "1k0v9wrfzqt-6sw",
    "1k0v9xnx4da-wkp",
    "1k0v9xdaq8m-ddj",
    "1k0v9yw7bz1-53h",
)


@pytest.fixture
def old_store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The old store, in the home folder of this test."""
    folder = home()
    folder.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(folder / DATABASE) as database:
        database.executescript((OLD / "store.sql").read_text().replace("{ASSETS}", str(OLD / "assets")))
    database.close()
    shutil.copytree(OLD / "runs", folder / "runs")
    monkeypatch.setenv("ISOVIZ_RUNNER", "off")
    store = Store()
    yield store
    store.close()


def events_of(store: Store, run: str) -> list[Event]:
    return [
        parse_event({name: value for name, value in body.items() if name != "time"}) for _, body in store.events(run)
    ]


def test_every_event_is_read_as_today(old_store: Store) -> None:
    events = [event for row in old_store.list() for event in events_of(old_store, row.id)]
    assert len(events) == 177
    measured = [event for event in events if isinstance(event, Measured)]
    assert len(measured) == 17


def test_its_numbers_are_those_that_were_written(old_store: Store) -> None:
    """By the command line's JSON, whose keys are a contract."""
    from isoviz.commands.run_report import as_json

    run = as_json(old_store.get(FINISHED))
    isotropy = run["isotropy"]
    assert run["metrics"]["accuracy"] == 0.5625
    assert isotropy["isoscore"] == pytest.approx(0.0396, abs=5e-5)
    assert isotropy["isoscore_star"] == pytest.approx(0.2804, abs=5e-5)
    assert len(isotropy["by_layer"]) == 4 and len(isotropy["ev"]) > 3
    assert {"isoscore_unbiased", "mean_cosine", "twonn", "i1", "i2"} <= isotropy.keys()


@pytest.fixture
def open_page(old_store: Store) -> Iterator[OpenPage]:
    from dashboard import resources

    def opened(name: str, **query: str) -> AppTest:
        app = AppTest.from_file(ROOT / "dashboard" / "app.py", default_timeout=180).run()
        app.switch_page(str(ROOT / "pages" / f"{name}.py"))
        for key, value in query.items():
            app.query_params[key] = value
        return app.run()

    with packages_scanned_once():
        yield opened
    resources.close()


@pytest.mark.parametrize(
    ("page", "query"),
    [
        ("home", {}),
        ("train", {}),
        ("live", {}),
        ("results", {}),
        ("tradeoffs", {}),
        ("explore", {}),
        *(("run", {"run": run}) for run in (FINISHED, COLLAPSED, TRANSLATION, STOPPED)),
        *(("whatif", {"run": run}) for run in (FINISHED, STOPPED)),
    ],
)
def test_every_page_shows_it(open_page: OpenPage, page: str, query: dict[str, str]) -> None:
    app = open_page(page, **query)
    assert not app.exception


def test_tables_have_its_runs(old_store: Store) -> None:
    lines = tables.summary(tables.runs_frame(old_store.list())).to_dict("records")
    by_setup = {(line["task"], line["method"]): line for line in lines}
    baseline = by_setup["demo/acceptability", "baseline"]
    assert baseline["n"] == 2 and baseline["isoscore_star"] == pytest.approx((0.2804 + 0.2690) / 2, abs=1e-4)
    assert "collapsed" in by_setup["demo/acceptability", "istar"]["remarks"]


def test_its_stopped_run_continues(old_store: Store) -> None:
    from isoviz.training import train

    def two_epochs_more(config: RunConfig, emit: Emit, should_stop: ShouldStop, run_dir: Path, resume: bool) -> None:
        epochs = []

        def watched(event: Event) -> None:
            emit(event)
            if isinstance(event, Measured):
                epochs.append(event.epoch)

        train(config, watched, lambda: len(epochs) > 1 or should_stop(), run_dir, resume)

    old_store.requeue(STOPPED, claim="test")
    row = execute(old_store, STOPPED, train=two_epochs_more)
    events = events_of(old_store, STOPPED)
    resumed = next(event for event in events if isinstance(event, Resumed))
    assert row.status == "stopped" and resumed.step == 27
    assert [event.epoch for event in events if isinstance(event, Measured)] == [0, 1, 2, 3, 4, 5]
