"""Side by side: one setup per cell, averages only over whole rows, nothing pooled."""

from __future__ import annotations

import pytest

from dashboard.results import pivot
from dashboard.shared import tables
from isoviz.runs.rows import RunRow
from isoviz.runs.store import Store
from tests.dashboard.conftest import OpenPage
from tests.dashboard.made_up import config, finish, result, row

ONE, TWO = "demo/acceptability", "demo/paraphrase"


def run(method: str, seed: int, value: float, **more: object) -> RunRow:
    return row(f"{method}{seed}{value}{more}", config(method, seed, **more), outcome=result(value, 0.25))


RUNS = [
    *(run("baseline", seed, 0.5 + seed / 10, task=ONE) for seed in range(3)),
    *(run("baseline", seed, 0.8 + seed / 10, task=TWO) for seed in range(2)),
    run("isobn", 0, 0.7, task=ONE),
]


def test_tasks_across_with_the_papers_average() -> None:
    table = pivot.made(tables.runs_frame(RUNS), "task").set_index("Method")
    assert list(table) == [f"{ONE} (accuracy)", f"{TWO} (accuracy)", pivot.AVERAGE]
    assert table.loc["Baseline", f"{ONE} (accuracy)"] == "0.600 ± 0.100"
    assert table.loc["Baseline", f"{TWO} (accuracy)"] == "0.850 ± 0.071"
    # (0.6 + 0.85) / 2; over seeds 0 and 1 it is 0.65 and 0.75
    assert table.loc["Baseline", pivot.AVERAGE] == "0.725 ± 0.071"
    assert table.loc["IsoBN β = 0.5", [f"{TWO} (accuracy)", pivot.AVERAGE]].tolist() == ["", ""]


def test_a_setting_shared_by_a_task_is_in_its_heading() -> None:
    runs = [
        run(method, seed, 0.5, task=task, max_train=rows)
        for method in ("baseline", "isobn")
        for seed in (0, 1)
        for task, rows in (("demo/acceptability", 1000), ("demo/paraphrase", 2000))
    ]
    table = pivot.made(tables.runs_frame(runs), "task")
    assert len(table) == 2 and "Settings" not in table
    assert "demo/paraphrase (accuracy, max_train 2000)" in table and not (table == "").any(axis=None)


def test_setups_are_never_averaged_into_one_cell() -> None:
    runs = [run("baseline", 0, 0.5), run("baseline", 0, 0.7, epochs=9), run("isobn", 0, 0.6)]
    table = pivot.made(tables.runs_frame(runs), "label")
    cells = [cell for line in table.drop(columns="Settings").to_dict("records") for cell in line.values() if cell]
    assert sorted(cells) == ["0.500", "0.600", "0.700"]
    assert set(table["Settings"]) == {"epochs 3", "epochs 9"}


def test_parameters_across() -> None:
    runs = [
        row(f"r{lam}{seed}", config("istar", seed, {"lam": lam}), outcome=result(0.5 + lam / 10, 0.25))
        for lam in (-1, 1)
        for seed in range(2)
    ]
    table = pivot.made(tables.runs_frame(runs), "variant")
    assert table[["λ = −1", "λ = 1"]].values.tolist() == [["0.400 ± 0.000", "0.600 ± 0.000"]]


def test_scores_of_other_scales_have_no_average() -> None:
    runs = [run("baseline", 0, 0.5), run("baseline", 0, 0.5, task="demo/translation")]
    runs[1] = row("t", config(task="demo/translation"), outcome=result(0.5, 0.25, bleu=20.0))
    assert pivot.AVERAGE not in pivot.made(tables.runs_frame(runs), "task")


@pytest.mark.parametrize("tasks", [1, 2])
def test_it_is_open_where_there_are_several_tasks(open_page: OpenPage, store: Store, tasks: int) -> None:
    for task in (ONE, TWO)[:tasks]:
        for method in ("baseline", "isobn"):
            finish(store, config(method, task=task), 0.7, 0.25)
    page = open_page("results")
    assert not page.exception
    assert any(pivot.AVERAGE in table.value for table in page.dataframe) is (tasks > 1)
