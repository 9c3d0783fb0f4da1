"""Lists of runs: columns match the runs, and an unreadable run does not break a list."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from isoviz.config import RunConfig
from isoviz.errors import InputError
from isoviz.runs import schema
from isoviz.runs.rows import UnreadableRunError
from isoviz.runs.store import Store
from isoviz.runs.summaries import RunSummary, summary_of
from tests.dashboard.made_up import config as resolved
from tests.dashboard.made_up import fail, finish

Make = Callable[..., RunConfig]


def damage(store: Store, run: str, column: str, value: str = '{"version": 1, "mod') -> None:
    with store._database.writing() as connection:
        statement = f"UPDATE isoviz_runs SET {column} = :value WHERE id = :run"
        assert connection.execute(text(statement), {"value": value, "run": run}).rowcount == 1


def only(store: Store, run: str) -> RunSummary:
    return next(summary for summary in store.summaries() if summary.id == run)


def test_a_finished_run_is_summed_up_in_columns(store: Store) -> None:
    run = finish(store, resolved("istar", seed=3, params={"lam": 2.0}, epochs=4), 0.75, 0.25, "g", seconds=6.5)
    summary = only(store, run)
    assert (summary.model, summary.task, summary.method, summary.seed, summary.epochs) == (
        *("demo/tiny-bert", "demo/acceptability", "istar"),
        *(3, 4),
    )
    assert (summary.group, summary.status, summary.params["lam"]) == ("g", "finished", 2.0)
    assert summary.setup == store.get(run).config.setup_key()
    assert summary.metrics == {"accuracy": 0.75, "matthews": 0.75, "loss": 0.5, "epoch": 3}
    assert summary.isotropy["isoscore_star"] == 0.25 and summary.home("isoscore_star") == "layers"
    assert summary.isotropy["isoscore"] == 0.2 and summary.home("isoscore") == "head"
    assert summary.size("head") == (500, 128)
    assert summary.numbers["baseline"] == {"majority": 0.5, "bag_of_words": 0.625} and summary.eval_rows == 500
    assert summary.numbers["timing"]["train_seconds"] == 6.5


def test_columns_match_the_complete_run(store: Store) -> None:
    finish(store, resolved("istar"), 0.75, None)
    finish(store, resolved(), 0.0, 0.5, collapsed="predicts one class")
    fail(store, resolved(seed=1))
    fail(store, resolved(seed=2), diverge=True)
    for row in store.list():
        from_events, from_columns = summary_of(row), only(store, row.id)
        beside = {"numbers", "eval_rows", "notes"}  # these are of events that the row does not hold
        assert {name: value for name, value in vars(from_columns).items() if name not in beside} == {
            name: value for name, value in vars(from_events).items() if name not in beside
        }
        assert {kind: of for kind, of in from_columns.numbers.items() if kind != "baseline"} == from_events.numbers


def test_undefined_numbers_come_with_their_reason_or_none(store: Store) -> None:
    run = finish(store, resolved(), 0.5, None)
    summary = only(store, run)
    assert summary.isotropy["isoscore_star"] is None
    assert summary.undefined.keys() <= summary.isotropy.keys()


def test_a_queued_run_has_its_configuration_only(store: Store, config: Make) -> None:
    (run,) = store.create([config(seed=5)])
    summary = only(store, run)
    assert (summary.seed, summary.numbers, summary.eval_rows, summary.message) == (5, {}, None, "")


def test_filters_and_pages_are_of_the_database(store: Store, config: Make) -> None:
    ids = store.create([config(seed=seed, method=method) for method in ("isobn", "istar") for seed in range(5)])
    assert [run.id for run in store.summaries(method=["istar"], limit=2, offset=1)] == [ids[8], ids[7]]
    assert [run.id for run in store.summaries(status="finished")] == []
    assert store.summaries(group="none") == []
    with pytest.raises(InputError, match="unknown status"):
        store.summaries(status="asleep")
    assert sorted((facet.method, facet.runs) for facet in store.facets()) == [("isobn", 5), ("istar", 5)]


def test_the_revision_counts_what_lists_show(store: Store, config: Make) -> None:
    seen = [store.revision()]

    def changed() -> bool:
        seen.append(store.revision())
        return seen[-1] != seen[-2]

    (run,) = store.create([config()])
    assert changed()
    store.claim("test", "cpu")
    assert changed()
    store.heartbeat(run)
    store.note(run, "a note")
    assert not changed()
    store.rename(run, "another")
    assert changed()
    store.request_stop(run)
    assert not changed()
    store.unclaim(run, store.get(run).attempt)
    assert changed()
    store.request_stop(run)
    assert changed() and store.get(run).status == "stopped"
    store.requeue(run)
    assert changed()
    store.delete(run)
    assert changed() and store.summaries() == []


def test_a_run_that_continues_after_a_failure_is_summed_up_again(store: Store) -> None:
    from tests.dashboard.made_up import result

    run = fail(store, resolved())
    assert only(store, run).message == "out of *memory* <b>"
    store.requeue(run)
    store.claim("test", "cpu", id=run)
    store.append(run, [result(0.5, 0.5)])
    summary = only(store, run)
    assert (summary.message, summary.advice, summary.metrics["accuracy"]) == ("", "", 0.5)


def test_equal_settings_are_one_setup_though_an_older_version_wrote_them(store: Store) -> None:
    """A version that did not know a setting wrote setups without it."""
    old, new = (finish(store, resolved(seed=seed), 0.5, 0.5) for seed in (0, 1))
    with store._database.writing() as connection:
        body = connection.scalar(text("SELECT body FROM isoviz_setups"))
        assert '"allow_random": false, ' in body
        values = {"key": "0" * 32, "body": body.replace('"allow_random": false, ', "")}
        connection.execute(schema.setups.insert().values(**values))
        connection.execute(
            text("UPDATE isoviz_summaries SET setup = :key WHERE run_id = :run"), {"key": "0" * 32, "run": old}
        )
    assert only(store, old).setup == only(store, new).setup


# ------------------------------------------------------------------------------------------------ unreadable runs


@pytest.mark.parametrize("column", ["config", "result", "progress", "error"])
def test_one_unreadable_run_is_listed_with_the_reason(store: Store, column: str) -> None:
    good, bad = (finish(store, resolved(seed=seed), 0.5, 0.5) for seed in (0, 1))
    damage(store, bad, column)
    listed = {run.id: run for run in store.summaries()}
    assert listed[good].unreadable == "" and listed[good].metrics["accuracy"] == 0.5
    assert "is not valid" in listed[bad].unreadable and listed[bad].metrics == {}
    assert [run.id for run in store.list()] == [good]
    assert [run.id for run in store.unreadable()] == [bad]
    with pytest.raises(UnreadableRunError, match=f"run '{bad}' is unreadable: its "):
        store.get(bad)
    store.delete(bad)
    assert store.unreadable() == [] and [run.id for run in store.summaries()] == [good]


def test_a_configuration_of_a_newer_version_is_unreadable_not_wrong(store: Store) -> None:
    (run,) = store.create([resolved()])
    damage(store, run, "config", '{"version": 2, "model": "demo/tiny-bert", "curvature": 1}')
    assert "version" in store.unreadable()[0].unreadable


def test_damage_of_the_same_length_is_detected_in_the_list_of_full_runs(store: Store) -> None:
    run = finish(store, resolved(), 0.5, 0.5)
    with store._database.reading() as connection:
        config = connection.scalar(text("SELECT config FROM isoviz_runs"))
    damage(store, run, "config", config.replace('"epochs":3', '"epochs":X'))
    assert store.unreadable() == []
    assert store.list() == []
    assert [run.id for run in store.unreadable()] == [run]


def test_a_run_whose_summary_is_outdated_is_read_in_full(store: Store) -> None:
    """As one that a worker of an older version ended."""
    run = finish(store, resolved(), 0.5, 0.25)
    with store._database.writing() as connection:
        connection.execute(text("UPDATE isoviz_summaries SET ending_length = NULL, collapsed = 'stale'"))
        connection.execute(text("DELETE FROM isoviz_numbers"))
    summary = only(store, run)
    assert (summary.metrics["accuracy"], summary.isotropy["isoscore_star"], summary.collapsed) == (0.5, 0.25, "")
    assert store.unreadable() == []


def test_a_summary_of_before_chance_was_judged_counts_as_collapsed(store: Store) -> None:
    run = finish(store, resolved(), 0.49, 0.25, matthews=-0.02)
    assert only(store, run).collapsed == "does no better than chance"
    with store._database.writing() as connection:
        connection.execute(text("UPDATE isoviz_summaries SET collapsed = ''"))
    assert only(store, run).collapsed == store.get(run).collapsed == "does no better than chance"


def test_an_unreadable_run_in_the_queue_fails_and_the_next_continues(store: Store, config: Make) -> None:
    bad, good = store.create([config(seed=0), config(seed=1)])
    damage(store, bad, "config")
    assert store.claim("test", "cpu") is None
    row = store.claim("test", "cpu")
    assert row is not None and row.id == good
    assert {run.id: run.status for run in store.summaries()} == {bad: "failed", good: "running"}
    store.delete(bad)


def test_a_running_run_with_damaged_progress_can_be_ended(store: Store, config: Make) -> None:
    (run,) = store.create([config()])
    store.claim("test", "cpu")
    damage(store, run, "progress")
    assert store.list(status="running") == [] and [run.id for run in store.unreadable()] == [run]
    assert store.signals(run).status == "running"
    from isoviz.runs.recovery import lost

    store.append(run, [lost(None)])
    assert store.get(run).status == "lost" and store.unreadable() == []


# ------------------------------------------------------------------------------------------------------ migration


def to_version_1(store: Store) -> None:
    with store._database.writing() as connection:
        for table in ("isoviz_summaries", "isoviz_setups", "isoviz_numbers"):
            connection.execute(text(f"DROP TABLE {table}"))
        connection.execute(text("DELETE FROM isoviz_meta WHERE key = 'revision'"))
        connection.execute(text("UPDATE isoviz_meta SET value = '1' WHERE key = 'schema'"))


def test_a_store_of_version_1_gets_the_same_summaries(store: Store, store_url: str) -> None:
    finish(store, resolved("istar"), 0.75, 0.5)
    fail(store, resolved(seed=1))
    store.create([resolved(seed=2)])
    before = store.summaries()
    to_version_1(store)
    again = Store(store_url)
    assert again.summaries() == before
    again.create([resolved(seed=3)])
    assert again.revision() != "0"
    again.close()


def test_an_unreadable_run_does_not_stop_the_migration(store: Store, store_url: str) -> None:
    good, bad = (finish(store, resolved(seed=seed), 0.5, 0.5) for seed in (0, 1))
    damage(store, bad, "result", "null and void")
    to_version_1(store)
    again = Store(store_url)
    assert [run.id for run in again.unreadable()] == [bad]
    assert next(run for run in again.summaries() if run.id == good).metrics["accuracy"] == 0.5
    again.close()


def test_two_processes_that_open_an_old_store_at_once_upgrade_it_once(
    store: Store, store_url: str, tmp_path: Path
) -> None:
    for seed in range(20):
        finish(store, resolved(seed=seed), 0.5, 0.5)
    before = store.summaries()
    to_version_1(store)
    script = (
        "import sys, time, pathlib\n"
        "from isoviz.runs.store import Store\n"
        "import isoviz.runs.migration\n"
        "pathlib.Path(sys.argv[2]).touch()\n"
        "while not pathlib.Path(sys.argv[3]).exists(): time.sleep(0.001)\n"
        "print(len(Store(sys.argv[1]).summaries()))\n"
    )
    go = tmp_path / "go"
    ready = [tmp_path / f"ready-{number}" for number in range(3)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script, store_url, str(file), str(go)], stdout=subprocess.PIPE, text=True
        )
        for file in ready
    ]
    while not all(file.exists() for file in ready):
        assert all(process.poll() is None for process in processes)
    go.touch()
    assert [process.communicate(timeout=120)[0].strip() for process in processes] == ["20"] * 3
    assert store.summaries() == before


def test_a_column_is_added_once(store: Store) -> None:
    from sqlalchemy import Column, MetaData, String, Table

    from isoviz.runs.migration import add_column

    table = Table("isoviz_runs", MetaData(), Column("colour", String(64), server_default=""))
    (run,) = store.create([resolved()])
    with store._database.writing() as connection:
        add_column(connection, table.c.colour)
        add_column(connection, table.c.colour)
        assert connection.scalar(text("SELECT colour FROM isoviz_runs")) == ""
    assert store.get(run).id == run
