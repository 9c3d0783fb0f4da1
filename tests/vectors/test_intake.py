"""A file whose kind its content decides, read once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

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


def test_a_summary_names_the_dimensions_and_those_that_look_like_something_else(tmp_path):
    points = np.random.default_rng(0).normal(size=(40, 3))
    table = pd.DataFrame(points, columns=["x0", "x1", "x2"]).assign(fold_start=range(100, 140))
    table.to_csv(tmp_path / "a.csv", index=False)
    summary = intake.import_file(ImportRequest("vectors", str(tmp_path / "a.csv")))
    assert (summary.dimensions, summary.odd) == (("x0", "x1", "x2", "fold_start"), ("fold_start",))
    assert intake.describe(summary.key) == replace(summary, names={})
    named = intake.import_file(ImportRequest("vectors", str(tmp_path / "a.csv"), Columns(points="x*")))
    assert (named.dimensions, named.odd) == (("x0", "x1", "x2"), ())
