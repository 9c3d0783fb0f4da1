"""Results says whether settings differ, with exclusions, and refuses to compare different setups; side by side, one setup per cell."""

from __future__ import annotations

import io
import re

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.results import comparison, pivot
from dashboard.shared import tables
from isoviz.runs.rows import RunRow
from isoviz.runs.store import Store
from tests.dashboard.conftest import Offered, OpenPage
from tests.dashboard.made_up import config, fail, finish, result, row, started
from tests.dashboard.reading import texts

PAIRS = [(0.70, 0.71, 0.80), (0.74, 0.73, 0.85), (0.68, 0.70, 0.79), (0.72, 0.72, 0.81)]


@pytest.fixture
def filled(store: Store) -> Store:
    """Four seeds of three methods, and one that failed."""
    for seed, values in enumerate(PAIRS):
        for method, value in zip(("baseline", "isobn", "cosreg"), values, strict=True):
            finish(store, config(method, seed), value, 0.25)
    fail(store, config("isobn", 4))
    return store


def compared(page: AppTest) -> pd.DataFrame:
    """The table of the comparison, by setting."""
    assert not page.exception
    return next(frame.value for frame in page.dataframe if "Differs?" in frame.value).set_index("Setting")


def test_a_table_and_files(open_page: OpenPage, filled: Store, offered: Offered) -> None:
    page = open_page("results")
    table = compared(page)
    assert table["Differs?"].to_dict() == {
        "Baseline": "baseline",
        "IsoBN β = 0.5": "not shown; about 66 seeds would show it",
        "CosReg λ = 1": "yes",
    }
    assert "Excluded: IsoBN β = 0.5, seed 4 (failed: out of *memory* <b>)" in texts(page)
    latex = offered["results-demo-acceptability-accuracy.tex"]()
    assert r"Method & Mean & Difference & n & IsoScore" in latex
    assert re.search(
        r"IsoBN \$\\beta\$ = 0\.5 & 0\.715 \$\\pm\$ 0\.013 & \+0\.005 \[\$-\$0\.0\d\d, 0\.0\d\d\] & 4 &", latex
    )
    for text in (latex, offered["compared-demo-acceptability-accuracy.tex"]()):  # what any TeX engine reads
        assert (
            text.isascii() and text.count("{") == text.count("}") and text.startswith(r"% Needs \usepackage{booktabs}.")
        )
        (columns,) = re.findall(r"\\begin\{tabular\}\{([lr]+)\}", text)
        lines = [line for line in text.splitlines() if line.endswith(r"\\")]
        assert len(lines) > 3 and {len(re.findall(r"(?<!\\)&", line)) + 1 for line in lines} == {len(columns)}
    downloaded = pd.read_parquet(io.BytesIO(offered["compared-demo-acceptability-accuracy.parquet"]()))
    assert downloaded["setting"].tolist() == table.index.tolist()
    isobn = downloaded.set_index("setting").loc["IsoBN β = 0.5"]
    assert isobn["difference"] == pytest.approx(0.005) and isobn["mean"] == pytest.approx(0.715)
    assert isobn["seeds"] == "0: 0.71 · 1: 0.73 · 2: 0.7 · 3: 0.72"


def test_many_comparisons_begin_with_an_overview(open_page: OpenPage, store: Store) -> None:
    for seed, noise in enumerate((0.001, -0.002, 0.0)):
        finish(store, config("baseline", seed), 0.7 + noise, 0.25)
        for lam in range(1, 9):
            finish(store, config("istar", seed, {"lam": lam}), 0.7 + (lam == 8) * 0.2 + noise * lam / 3, 0.25)
    page = open_page("results")
    assert not page.exception
    paragraphs = [str(element.value).replace("\\", "") for element in page.markdown]
    assert "1 of 8 settings is shown to differ from Baseline: I-STAR λ = 8 (+0.199)." in paragraphs
    assert any(expander.label == "All 8 comparisons in sentences" for expander in page.expander)


def test_runs_of_different_setups_or_data_are_not_compared(open_page: OpenPage, filled: Store) -> None:
    finish(filled, config("isobn", 0, epochs=9), 0.7, 0.25)
    page = open_page("results")
    assert compared(page)["n"].to_dict() == {"Baseline": 4, "IsoBN β = 0.5": 4, "CosReg λ = 1": 4}
    assert [name[:17] for name in page.selectbox(key="comparable_demo/acceptability").options] == ["epochs 3, 13 runs"]
    before = started().model_copy(update={"data_fingerprint": "0a1b2c3d"})
    for seed in range(3):
        finish(filled, config("isobn", seed), 0.7, 0.25, before=[before])
        finish(filled, config("baseline", seed), 0.7, 0.25, before=[before])
    page = open_page("results")
    assert len(page.selectbox(key="comparable_demo/acceptability").options) == 2
    assert "content of the data" in texts(page) and "0a1b2c3d" not in texts(page)


def test_nothing_learned_is_a_warning(open_page: OpenPage, store: Store, offered: Offered) -> None:
    for method in ("baseline", "isobn"):
        for seed in range(3):
            finish(store, config(method, seed), 0.55 + seed / 100, 0.25)
    page = open_page("results")
    assert sum("Nothing was learned" in str(element.value) for element in page.warning) == 1
    files = [name for name in offered if name.startswith(("compared-", "results-demo", "runs."))]
    assert len(files) == 3 + 3 + 2
    for name in files:
        made = offered[name]()
        text = pd.read_parquet(io.BytesIO(made)).to_csv() if "parquet" in name else made
        assert "Nothing was learned: no run beats bag of words" in (text if isinstance(text, str) else text.decode()), (
            name
        )


def test_printed_numbers_are_beside_the_papers_models() -> None:
    runs = [
        run(method, 0, 0.7, model="google-bert/bert-base-cased", task="glue/rte", data="x")
        for method in ("baseline", "isobn")
    ]
    published = comparison.beside(tables.summary(tables.runs_frame(runs)), None).set_index("method")["published"]
    assert "0.622 ± 0.005 (I-STAR, 001, Table 1)" in published["baseline"]
    assert published["isobn"] == "0.708 ± 0.016 (median; IsoBN, 002, Table 1)"


ONE, TWO = "demo/acceptability", "demo/paraphrase"


def run(method: str, seed: int, value: float, **more: object) -> RunRow:
    return row(f"{method}{seed}{value}{more}", config(method, seed, **more), outcome=result(value, 0.25))


RUNS = [
    *(run("baseline", seed, 0.5 + seed / 10, task=ONE) for seed in range(3)),
    *(run("baseline", seed, 0.8 + seed / 10, task=TWO) for seed in range(2)),
    run("isobn", 0, 0.7, task=ONE),
]


def test_tasks_across_with_the_papers_average() -> None:
    table = pivot.made(tables.runs_frame(RUNS)).set_index("Method")
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
    table = pivot.made(tables.runs_frame(runs))
    assert len(table) == 2 and "Settings" not in table
    assert "demo/paraphrase (accuracy, max_train 2000)" in table and not (table == "").any(axis=None)


def test_setups_are_never_averaged_into_one_cell() -> None:
    runs = [run("baseline", 0, 0.5), run("baseline", 0, 0.7, epochs=9), run("isobn", 0, 0.6)]
    table = pivot.made(tables.runs_frame(runs))
    cells = [
        cell for line in table.drop(columns=["Settings", "Method"]).to_dict("records") for cell in line.values() if cell
    ]
    assert sorted(cells) == ["0.500", "0.600", "0.700"]
    assert set(table["Settings"]) == {"epochs 3", "epochs 9"}


def test_scores_of_other_scales_have_no_average() -> None:
    runs = [run("baseline", 0, 0.5), run("baseline", 0, 0.5, task="demo/translation")]
    runs[1] = row("t", config(task="demo/translation"), outcome=result(0.5, 0.25, bleu=20.0))
    assert pivot.AVERAGE not in pivot.made(tables.runs_frame(runs))
