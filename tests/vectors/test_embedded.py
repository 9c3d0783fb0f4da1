"""Vectors inside a page without a server."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
import pytest

from isoviz import vectors
from isoviz.errors import InputError
from isoviz.tables.kinds.page import START
from isoviz.vectors.embedded import embedded
from isoviz.vectors.sets import VectorSet


@pytest.mark.parametrize(
    "page",
    [
        "<!doctype html>",
        f"{START}null</script>",
        f'{START}{{"npy": "AAAA", "columns": {{}}}}</script>',
        f'{START}{{"npy": 1, "columns": {{}}}}</script>',
        f'{START}{{"columns": ',
    ],
)
def test_a_page_without_vectors_is_refused_beside_its_field(tmp_path: Path, page: str) -> None:
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    with pytest.raises(InputError, match="not a page with vectors") as caught:
        vectors.read(tmp_path / "page.html")
    assert caught.value.field == "vectors"


def test_a_sample_keeps_rows_and_columns_together_and_says_so() -> None:
    import pandas as pd

    points = np.arange(20_001.0)[:, None] + np.zeros((1, 2))
    columns = pd.DataFrame({"label": [str(row) for row in range(20_001)]})
    found = embedded(VectorSet(points, columns, name="x.npy"), sample=True)
    drawn = np.load(io.BytesIO(base64.b64decode(found["npy"])))
    assert drawn.shape == (20_000, 2)
    assert [str(int(row)) for row in drawn[:, 0]] == found["columns"]["label"]
    assert found["name"] == "x.npy (20,000 of 20,001 rows, drawn with seed 0)"
