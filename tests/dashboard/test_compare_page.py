"""The Compare page without a browser: three uploads to a verdict, errors beside their fields, the page for the boss."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
from streamlit.testing.v1 import AppTest

from dashboard.compare.form import OWN_VECTORS
from isoviz import demo
from tests.dashboard.conftest import Offered, OpenPage
from tests.dashboard.reading import drawn, errors, texts
from tests.dashboard.saved import saved
from tests.readouts.searches import Made, made

VECTORS = {"compare_from": OWN_VECTORS}


def csv(frame: pd.DataFrame) -> bytes:
    return frame.to_csv(index=False).encode()


def npy(points: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, points)
    return stream.getvalue()


def upload(page: AppTest, kind: str, **files: Any) -> AppTest:
    for role, file in files.items():
        page.file_uploader(key=f"compare_own.{kind}.{role}").set_value(file)
    return page.run()


def relevance(search: Made) -> tuple[str, bytes, str]:
    rows = pd.DataFrame(search.relevance[:, :2] + 1, columns=["query", "document"])
    return "relevance.csv", csv(rows), "text/csv"


def test_vectors_to_verdict_and_a_page_without_texts(
    open_page: OpenPage, jobs_here: list[str], offered: Offered
) -> None:
    search = made(seed=3)
    encoders = {"old.npy": 0.0, "noisy.npy": 1.5}
    parts = {name: search.seen(noise) for name, noise in encoders.items()}
    page = open_page("compare", **VECTORS)
    assert errors(page) == [] and page.dataframe[-1].value["Encoder"].tolist() == [
        row["name"] for row in demo.reference_encoders()
    ]
    files = [[(name, npy(part[side]), "") for name, part in parts.items()] for side in (0, 1)]
    page = upload(page, "vectors", file=files[0], questions=files[1], relations=relevance(search))
    assert errors(page) == [] and jobs_here == ["comparison"]
    assert "noisy.npy ranks lower than old.npy" in texts(page) and "do not switch" in texts(page)
    (figure,) = drawn(page)
    assert figure["data"][0]["x"][0] < -1
    table = page.dataframe[0].value.set_index("Encoder")
    assert table.loc["noisy.npy", "Verdict"] == "lower" and table.loc["old.npy", "Bytes per vector"] == 4 * 24
    page.text_input(key="compare_title").set_value("Should we switch?").run()
    name = next(name for name in offered if name.endswith(".html"))
    content = offered[name]().decode() if isinstance(offered[name](), bytes) else str(offered[name]())
    assert "<h1>Should we switch?</h1>" in content and "Questions that get worse" not in content
    order = [
        content.index(f"<h3>{title}</h3>") for title in ("Question", "Answer", "How sure", "What to do", "Details")
    ]
    assert order == sorted(order) and len(saved(content).figures) == 1
    page.toggle(key="export_texts").set_value(True).run()
    assert "Questions that get worse" in str(offered[name]())


def test_texts_from_three_files_and_what_does_not_match(open_page: OpenPage, jobs_here: list[str]) -> None:
    documents = pd.DataFrame({"id": range(30), "page_content": [f"about thing {n}" for n in range(30)], "year": 2020})
    questions = pd.DataFrame({"id": range(100, 115), "text": [f"what is thing {n}" for n in range(15)]})
    pairs = pd.DataFrame({"query": range(100, 116), "document": [*range(15), 999], "relevance": 1})
    page = open_page("compare", compare_models="demo/tiny-bert")
    page = upload(page, "texts", file=("d.csv", csv(documents), ""), questions=("q.csv", csv(questions), ""))
    assert errors(page) == [] and "Add which documents are relevant to these questions" in texts(page)
    page = upload(page, "texts", relations=("r.csv", csv(pairs), ""))
    assert errors(page) == []
    shown = texts(page)
    assert "1 of 16 rows of relevance left out: 2 ids are not in the set, such as '115', '999'" in shown
    assert "Columns that are not used: year" in shown and "45 texts, with id, group, relevance" in shown
    assert "Choose at least two encoders" in shown and jobs_here == []
    page = upload(page, "texts", relations=("r.csv", csv(pairs.assign(document=-1)), ""))
    assert len(errors(page)) == 1 and "16 rows of relevance left out" in errors(page)[0]
