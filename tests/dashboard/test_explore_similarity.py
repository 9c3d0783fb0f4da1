"""Layers of two views: rows of own sets match by their ids."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dashboard.explore import similarity
from dashboard.explore.form import Pane
from isoviz import vectors
from isoviz.exploring import results, user_sets, vector_view
from isoviz.exploring.request import ViewRequest

POINTS = np.random.default_rng(0).normal(size=(30, 4))
IDS = np.array([f"{index:02d}" for index in range(30)])


def shown(points: Any, ids: Any) -> Any:
    columns = None if ids is None else pd.DataFrame({"id": ids})
    key = vectors.keep(vectors.from_points(np.asarray(points), columns))
    request = ViewRequest("", user_sets.VECTORS, data=key, split=user_sets.ALL_ROWS)
    results.STORE.publish(key, *vector_view.compute(request, lambda *_: None, complete=False))
    view = results.find(key)
    assert view is not None
    return Pane(1, 1, SimpleNamespace(request=request), view, 0, user_sets.POOLING)  # type: ignore[arg-type]


def test_vectors_of_the_same_ids_are_compared_row_by_row() -> None:
    order = np.random.default_rng(1).permutation(30)[:20]
    rotated = POINTS[order] @ np.linalg.qr(POINTS[:4])[0]
    one, other = shown(POINTS, IDS), shown(rotated, IDS[order])
    assert similarity._pairs([one, other]) == [(one, other)]
    first, second = ((*similarity._place(each), (0,)) for each in (one, other))
    np.testing.assert_allclose(similarity._computed(first, second, "CKA", "id"), 1, atol=1e-6)
    np.testing.assert_allclose(similarity._computed(first, second, "Shared neighbours", "id"), 1)


@pytest.mark.parametrize("ids", [None, np.char.add("x", IDS)], ids=["no ids", "other ids"])
def test_other_sets_are_not_compared(ids: Any) -> None:
    assert similarity._pairs([shown(POINTS, IDS), shown(POINTS + 1, ids)]) == []
