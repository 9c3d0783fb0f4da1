"""Views of a person's own vectors and texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from isoviz import metrics, vectors
from isoviz.errors import InputError
from isoviz.exploring import encoders, measuring, results, user_sets, vector_view
from isoviz.exploring.request import ViewRequest, key_of, rows_of

POINTS = np.random.default_rng(0).normal(size=(80, 6)).astype(np.float32) + 1


def _stored_set(**columns: Any) -> str:
    return vectors.keep(vectors.from_points(POINTS, pd.DataFrame(columns) if columns else None, name="mine"))


def _view(key: str) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
    early: list[dict[str, Any]] = []
    facts, arrays = vector_view.compute(
        ViewRequest("", user_sets.VECTORS, key, user_sets.ALL_ROWS),
        lambda *_: None,
        lambda facts, _: early.append(facts),
    )
    return facts, arrays, early


def test_own_vectors_are_one_layer_with_every_measure() -> None:
    facts, arrays, early = _view(_stored_set(label=[0, 1] * 40, text=[f"t{row}" for row in range(80)]))
    (entry,) = facts["entries"]
    assert (entry["layer"], entry["pooling"], entry["n"], entry["d"]) == (0, user_sets.POOLING, 80, 6)
    assert entry["readings"]["isoscore"]["value"] == pytest.approx(metrics.isoscore(POINTS))
    assert entry["readings"]["twonn"]["value"] == pytest.approx(metrics.twonn(POINTS))
    assert "twonn" in early[0]["pending"] and "pending" not in facts
    np.testing.assert_allclose(arrays["0.vectors.cloud"], POINTS, atol=2e-3)
    table = measuring.points.unpacked(arrays["rows.parquet"])
    assert table["label"].tolist() == ["0", "1"] * 40, "few whole numbers are groups"


def test_the_first_pictures_are_there_before_the_slow_measures() -> None:
    key = _stored_set()
    vector_view.publish_first(ViewRequest("", user_sets.VECTORS, key, user_sets.ALL_ROWS), "f" * 32)
    view = results.find("f" * 32)
    assert view is not None and "twonn" in view.pending and len(view.points(0, user_sets.POOLING)) == 80


def test_zero_vectors_are_reported() -> None:
    points = POINTS.copy()
    points[4] = 0
    facts, _, _ = _view(vectors.keep(vectors.from_points(points)))
    assert facts["warnings"] == ["1 of 80 rows is zero and left out (the first is row 5)"]


def test_a_set_that_is_gone_is_reported() -> None:
    key = _stored_set()
    vectors.forget(key)
    with pytest.raises(InputError, match="no longer on this server") as caught:
        _view(key)
    assert caught.value.field == "data"


def test_own_texts_give_the_layer_profile(tmp_path: Path) -> None:
    lines = [f"the {colour} cat sees {count} birds" for colour in ("red", "grey") for count in range(10)]
    key = vectors.keep(vectors.from_texts(lines))
    request = ViewRequest("demo/tiny-bert", user_sets.TEXTS, key, user_sets.ALL_ROWS)
    request.check()
    facts, arrays = measuring.compute(request, lambda *_: None)
    assert facts["rows"] == facts["rows_in_split"] == 20
    assert {entry["layer"] for entry in facts["entries"]} == set(range(facts["depth"] + 1))
    assert measuring.points.unpacked(arrays["rows.parquet"])["text"].tolist() == lines
    assert "no training split" in facts["shrinkage"]["reason"]
    rows = rows_of(user_sets.TEXTS, key)
    assert rows.counts == {user_sets.ALL_ROWS: 20}
    assert key_of(request, encoders.resolve("demo/tiny-bert"), rows) != key_of(request, None, rows)
