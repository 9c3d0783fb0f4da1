"""Lists of runs: columns match the runs, and a run of a newer version does not break a list."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from isoviz.errors import InputError, StoreError
from isoviz.runs.comparisons.comparing import why_excluded
from isoviz.runs.store import Store
from isoviz.runs.summaries import RunSummary, summary_of
from tests.dashboard.made_up import config as resolved
from tests.dashboard.made_up import fail, finish, result, started
from tests.runs.conftest import Make


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
    assert summary.isotropy["isoscore_star"] == 0.25 == summary.numbers["layers"]["isoscore_star"]
    assert summary.isotropy["isoscore"] == 0.2 == summary.numbers["head"]["isoscore"]
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
        beside = {"numbers", "eval_rows", "notes", "steps"}  # these are of events that the row does not hold
        assert {name: value for name, value in vars(from_columns).items() if name not in beside} == {
            name: value for name, value in vars(from_events).items() if name not in beside
        }
        assert {kind: of for kind, of in from_columns.numbers.items() if kind != "baseline"} == from_events.numbers


def test_what_learned_nothing_in_few_steps_is_undertrained(store: Store) -> None:
    for seed, steps in enumerate((49, 50)):
        (run,) = store.create([resolved(seed=seed)])
        store.claim("test", "cpu", id=run)
        begun = started().model_copy(update={"total_steps": steps})
        store.append(run, [begun, result(0.5, 0.25, collapsed="predicts one class")])
    few, enough = sorted(store.list(), key=lambda row: row.config.seed)
    assert few.left_out == "undertrained: predicts one class after 49 steps; train longer"
    assert enough.left_out == "collapsed: predicts one class"
    for row in (few, enough):
        assert only(store, row.id).left_out == row.left_out
        assert why_excluded(row, "accuracy") == row.left_out and why_excluded(row, "isoscore_star") == ""


def test_filters_and_pages_are_of_the_database(store: Store, config: Make) -> None:
    ids = store.create([config(seed=seed, method=method) for method in ("isobn", "istar") for seed in range(5)])
    assert [run.id for run in store.summaries(method=["istar"], limit=2)] == [ids[9], ids[8]]
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
    store.release(run, store.get(run).attempt)
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


# ------------------------------------------------------------------------------------------------ unreadable runs


def test_a_run_of_a_newer_version_is_left_out_and_can_be_deleted(store: Store) -> None:
    good, bad = (finish(store, resolved(seed=seed), 0.5, 0.5) for seed in (0, 1))
    damage(store, bad, "config", '{"version": 2, "model": "demo/tiny-bert", "curvature": 1}')
    assert [run.id for run in store.list()] == [good]
    with pytest.raises(StoreError, match=f"run '{bad}' is unreadable: its config is not valid .*version"):
        store.get(bad)
    store.delete(bad)
    assert [run.id for run in store.summaries()] == [good]


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
    assert store.list(status="running") == []
    assert store.signals(run).status == "running"
    from isoviz.runs.recovery import lost

    store.append(run, [lost(None)])
    assert store.get(run).status == "lost"
