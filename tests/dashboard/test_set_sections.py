"""A set's rows as sorted lists, its slices and its compression frontier, on Explore, What-if and the Ruler."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import isoviz
from dashboard.inputs import set_sections
from dashboard.shared import menu
from isoviz import vectors
from isoviz.__main__ import main
from isoviz.jobs import queue
from isoviz.operations.jobs import OF_SET
from isoviz.readouts import Annotations
from isoviz.readouts.frontier import frontier
from isoviz.readouts.slices import measured, slicing
from isoviz.vectors import VectorSet
from isoviz.whatif.scheduler import SCHEDULER
from tests.dashboard.conftest import Offered, OpenPage
from tests.dashboard.reading import errors, texts
from tests.jobs.here import work_here


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(queue, "start", lambda kind, key, request, *_, **__: work_here(kind, key, request))
    yield
    SCHEDULER.close()


@pytest.fixture
def kept() -> VectorSet:
    generator = np.random.default_rng(0)
    points = generator.normal(size=(90, 16)) @ generator.normal(size=(16, 16)) + 0.4
    points[80:] *= 3
    points[7], points[11] = 0, points[3]
    columns = {"text": [f"row {n} " + "x" * n for n in range(90)], "group": ["short"] * 80 + ["long"] * 9 + ["single"]}
    made = VectorSet(points.astype(np.float32), pd.DataFrame(columns), name="made")
    vectors.keep(made)
    return made


def test_what_if_lists_rows_slices_frontier_and_gate(
    open_page: OpenPage, kept: VectorSet, offered: Offered, tmp_path: Path
) -> None:
    shown = dict.fromkeys(("whatif_rows", "whatif_slices", "whatif_frontier", "whatif_gate"), "true")
    page = open_page("whatif", **menu.WHATIF_OWN, whatif_either=kept.key, **shown)
    assert errors(page) == []
    said, found = texts(page), isoviz.rows(kept.points)
    assert all(sentence in said for sentence in found.sentences) and "1 row is a copy of another." in said
    assert frontier(kept.points).sentence in said.replace(":gray[]@", "@")  # no link to a person
    table = next(frame.value for frame in page.dataframe if "N_10" in frame.value)
    best = found.order("hubs")[0]
    assert (table["row"][0], table["N_10"][0]) == (found.row[best] + 1, pytest.approx(found.n_k[best]))
    assert table["text"][0] == kept.columns["text"][found.row[best]]
    every = measured(kept.points, Annotations(), slicing(kept.columns, "group"))
    table = next(frame.value for frame in page.dataframe if "slice" in frame.value)
    np.testing.assert_allclose(table["value"], [one.value for one in every])
    page.selectbox(key="whatif_slice_measure").set_value("norm").run()
    assert re.search(r"norm: different from the rest: long \(p = .+\); short \(p = ", texts(page))
    baseline = json.loads(offered["baseline.json"]())
    (tmp_path / "baseline.json").write_text(json.dumps(baseline))
    assert "The gate fails when these 90 rows lose" in said and baseline["n"] == 90
    command = next(block.value for block in page.code if "isoviz check" in block.value).splitlines()[-1]
    for name, points, code in (("same", kept.points, 0), ("permuted", kept.points[::-1], 1)):
        np.save(tmp_path / f"{name}.npy", points)
        words = command.replace(" made ", f" {tmp_path}/{name}.npy ").replace(
            "baseline.json", f"{tmp_path}/baseline.json"
        )
        assert main(words.split()[1:]) == code, name
    assert any("posthoc.truncation(keep=16)" in block.value for block in page.code)
    assert offered["rows.csv"]().count(b"\n") == 90  # a header, and 89 rows that are not zero
    page.segmented_control(key="whatif_row_list").set_value("near-duplicates").run()
    table = next(frame.value for frame in page.dataframe if "N_10" in frame.value)
    assert (table["row"][0], table["copy of"][0], table["nearest row"][0]) == (12, 4, 4)


def test_a_map_is_coloured_by_documents_and_leaves_queries_without(kept: VectorSet) -> None:
    ids = [f"r{row}" for row in range(90)]
    pairs = pd.DataFrame({"left": ids[80:], "right": ids[20:30], "score": 1.0})
    search = VectorSet(kept.points, kept.columns.assign(id=ids), pairs, "relevance", "search")
    request = {"vectors": vectors.keep(search), "what": "rows"}
    table = pd.DataFrame({"row": [3, 20, 85]})
    assert set_sections.measured(table, search.key) is table
    work_here(OF_SET, queue.content_key(OF_SET, request, None), request)
    coloured = set_sections.measured(table, search.key)
    found = isoviz.rows(kept.points[:80], kept.points[80:])
    assert coloured["share of queries"][1] == found.found[found.row == 20][0]
    assert np.isfinite(coloured["N_10"]).tolist() == [True, True, False]


def test_the_rulers_slices(open_page: OpenPage, kept: VectorSet) -> None:
    page = open_page("ruler", ruler_set=menu.OWN_SET, ruler_either=kept.key, ruler_slices="true")
    page.run()
    assert errors(page) == []
    table = next(frame.value for frame in page.dataframe if "slice" in frame.value)
    assert set(table["measure"]) == {"unrelated pairs above the noise floor"}
