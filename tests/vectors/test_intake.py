"""A file whose kind its content decides, read once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from isoviz import vectors
from isoviz.errors import InputError
from isoviz.tables import formats
from isoviz.vectors import Columns, intake
from isoviz.vectors.intake import ImportRequest

CASES = {
    "review,stars,year": ("good {0},{0},200{0}", "texts"),
    "text,stars": ("good {0},{0}", "texts"),
    "review,label": ("good {0},{0}", "texts"),
    ",review": ("{0},good {0}", "texts"),
    "title,a,b,c,d": ("good {0},{0},1,2,3", "vectors"),
    "text,v": ('good {0},"[{0}, 1]"', "vectors"),
    "label,x,y": ("red,{0},1", "vectors"),
    "id,x,y": ("t{0},{0},1", "vectors"),
    "first,second,x,y": ("a {0},b {0},{0},1", "vectors"),
}


@pytest.mark.parametrize("header", CASES)
def test_the_columns_say_whether_a_table_holds_texts(header, tmp_path, monkeypatch):
    row, kind = CASES[header]
    (tmp_path / "a.csv").write_text("\n".join([header, *(row.format(index) for index in range(5))]))
    calls = []
    read = formats.read
    monkeypatch.setattr(formats, "read", lambda *given: calls.append(given) or read(*given))
    assert intake.import_file(ImportRequest("either", str(tmp_path / "a.csv"))).kind == kind
    assert len(calls) == 1


def test_labels_and_pairs_are_added_to_a_stored_set(tmp_path):
    lines = tmp_path / "t.txt"
    lines.write_text("\n".join(f"text {row}" for row in range(4)))
    base = intake.import_file(ImportRequest("either", str(lines))).key
    (tmp_path / "labels.csv").write_text("id,label\n4,d\n2,b\n1,a\n")
    (tmp_path / "pairs.csv").write_text("left,right,score\n1,2,0.5\n2,3,1\n3,4,0\n")

    labelled = intake.import_file(ImportRequest(base=base, beside=str(tmp_path / "labels.csv")))
    assert (labelled.kind, labelled.n, labelled.name) == ("texts", 4, "t.txt")
    stored = vectors.load_any(labelled.key)
    assert stored.columns["label"].fillna("").tolist() == ["a", "b", "", "d"]
    assert stored.columns["text"].tolist() == [f"text {row}" for row in range(4)]
    paired = intake.import_file(ImportRequest(base=labelled.key, relations=str(tmp_path / "pairs.csv")))
    assert paired.relation == "similarity" and "label" in paired.columns

    for content, problem in (
        ("topic,year\na,1\nb,2\n", "no column 'label', .*name one of its columns: topic, year"),
        ("id,topic\n1,a\n2,b\n", "no column 'label'; name one of its columns: id, topic"),
        ("label\na\nb\n", "2 labels, but 4 rows"),
        ("label\na\nb\nc\n", "3 labels, but 4 rows; the first line, 'label', was read as the header"),
        ("id,label\nx,a\n", "no row of the set has one of these ids, such as 'x'"),
    ):
        (tmp_path / "bad.csv").write_text(content)
        with pytest.raises(InputError, match=problem) as refused:
            intake.import_file(ImportRequest(base=base, beside=str(tmp_path / "bad.csv")))
        assert refused.value.field == "labels"
    with pytest.raises(InputError, match="no longer on this server"):
        intake.import_file(ImportRequest(base="0" * 32, beside=str(tmp_path / "labels.csv")))


def test_a_summary_names_the_dimensions_and_those_that_look_like_something_else(tmp_path):
    points = np.random.default_rng(0).normal(size=(40, 3))
    table = pd.DataFrame(points, columns=["x0", "x1", "x2"]).assign(fold_start=range(100, 140))
    table.to_csv(tmp_path / "a.csv", index=False)
    summary = intake.import_file(ImportRequest("vectors", str(tmp_path / "a.csv")))
    assert (summary.dimensions, summary.odd) == (("x0", "x1", "x2", "fold_start"), ("fold_start",))
    assert intake.describe(summary.key) == replace(summary, names={})
    named = intake.import_file(ImportRequest("vectors", str(tmp_path / "a.csv"), Columns(points="x*")))
    assert (named.dimensions, named.odd) == (("x0", "x1", "x2"), ())
