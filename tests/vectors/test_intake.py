"""A file whose kind its content decides, read once."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from isoviz import vectors
from isoviz.errors import InputError
from isoviz.vectors import TextSet, intake
from isoviz.vectors.intake import ImportRequest
from isoviz.vectors.reading import tables

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
def test_the_columns_say_whether_a_table_holds_texts(
    header: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, kind = CASES[header]
    (tmp_path / "a.csv").write_text("\n".join([header, *(row.format(index) for index in range(5))]))
    calls = []
    read = tables.read
    monkeypatch.setattr(tables, "read", lambda *given: calls.append(given) or read(*given))
    assert intake.import_file(ImportRequest("either", str(tmp_path / "a.csv"))).kind == kind
    assert len(calls) == 1


def test_pairs_of_texts_are_kept_and_checked(tmp_path: Path) -> None:
    pd.DataFrame({"id": [f"s{row}" for row in range(6)], "text": [f"text {row}" for row in range(6)]}).to_csv(
        tmp_path / "t.csv", index=False
    )
    pd.DataFrame({"left": ["s0", "s1", "s2"], "right": ["s3", "s4", "s5"], "score": [1, 2, 3]}).to_csv(
        tmp_path / "p.csv", index=False
    )
    order = ImportRequest("either", str(tmp_path / "t.csv"), relations=str(tmp_path / "p.csv"))
    summary = intake.import_file(order)
    assert (
        (summary.kind, summary.relation)
        == ("texts", "similarity")
        == (summary.kind, intake.describe(summary.key).relation)
    )
    stored = vectors.load_any(summary.key)
    assert isinstance(stored, TextSet) and stored.pairs is not None and stored.pairs["score"].tolist() == [1, 2, 3]
    assert intake.import_file(ImportRequest("texts", order.file)).key != summary.key
    with pytest.raises(InputError, match="no file"):
        intake.import_file(ImportRequest("either", order.file, relations=str(tmp_path / "none.csv")))
