"""Rows of zeros and copies are left out everywhere, counted and named; what they leave too few rows for is undefined."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import isoviz
from isoviz.errors import InputError
from isoviz.exploring.layers import retention
from isoviz.models import profile
from isoviz.operations.measure import MeasureRequest
from isoviz.operations.measure import measure as measure_file
from isoviz.readouts import Annotations, compare, cosines, measure
from isoviz.readouts.division import annotations_of, divide
from isoviz.readouts.image import Image
from isoviz.readouts.upgrade import upgrade
from isoviz.statistics.paired_bootstrap import interval
from isoviz.vectors import VectorSet
from tests.metrics.reference_clouds import equal_but_for_rounding

RNG = np.random.default_rng(5)
POINTS = RNG.standard_normal((300, 12)) + 0.8
ZEROS = POINTS.copy()
ZEROS[::3] = 0.0
OTHERS = np.delete(POINTS, np.s_[::3], axis=0)
LEFT_OUT = "100 of 300 rows are zero and left out"


def of(points: np.ndarray, **columns: list[object]) -> VectorSet:
    return VectorSet(points, pd.DataFrame({"id": [f"r{row}" for row in range(len(points))], **columns}))


def pair_cosines(points: np.ndarray) -> np.ndarray:
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    return (unit @ unit.T)[np.triu_indices(len(points), 1)]


def test_read_outs_are_of_the_rows_that_are_not_zero() -> None:
    found = measure(Image(ZEROS), Annotations(), ["random_pairs", "noise_floor", "nearest"])
    alone = measure(Image(OTHERS), Annotations(), list(found))
    assert found["random_pairs"].value == pytest.approx(pair_cosines(OTHERS).mean(), abs=1e-6)
    assert found["noise_floor"].value == pytest.approx(np.quantile(pair_cosines(OTHERS), 0.99), abs=1e-6)
    for slug, statistic in found.items():
        assert statistic.value == pytest.approx(alone[slug].value, abs=1e-6)
        widths = [end.high - end.low for end in (interval(statistic), interval(alone[slug]))]
        assert widths[0] == pytest.approx(widths[1], rel=0.2)


def test_every_room_leaves_zero_rows_out_and_says_so(tmp_path: Path) -> None:
    record = profile.measure(ZEROS)
    assert record.n == 200 and record.notes == (LEFT_OUT,)
    assert record.number("isoscore") == pytest.approx(profile.measure(OTHERS).number("isoscore"))
    ruler = isoviz.ruler(ZEROS)
    assert ruler.n == 200 and LEFT_OUT in ruler.protocol
    assert ruler.floor[2].cosine == pytest.approx(np.quantile(pair_cosines(OTHERS), 0.99))
    saved, ids = isoviz.baseline(ZEROS, ids=range(300)), range(300)
    checked = isoviz.check(ZEROS, saved, ids=ids)
    assert checked.ok(strict=True) and checked.rows == 200
    assert checked.notes()[:2] == [f"in the baseline, {LEFT_OUT}", LEFT_OUT]
    part = divide(of(ZEROS))
    assert not np.isin(np.concatenate([part.fit, part.rows]), np.arange(0, 300, 3)).any()
    assert f"{LEFT_OUT}." in part.notes
    assert upgrade(ZEROS, POINTS).notes == (f"{LEFT_OUT}.",)
    file = tmp_path / "zeros.npy"
    np.save(file, ZEROS)
    measured = measure_file(MeasureRequest(embeddings=str(file)))
    assert measured.document["n"] == 200 and LEFT_OUT in measured.notes


@pytest.mark.parametrize("points", [np.ones((40, 8)), np.zeros((40, 8)), equal_but_for_rounding(40, 8)])
def test_equal_rows_have_no_verdict(points: np.ndarray) -> None:
    with pytest.raises(InputError, match=r"distinct rows, got 1 in 40 rows|all rows are equal"):
        divide(of(points))
    record = profile.measure(points)
    assert record.reading("isoscore").undefined == record.reading("twonn").undefined == "all points are equal"
    for one in compare(points, points - points.mean(axis=0), Annotations()):
        assert one.difference.outcome == "undefined" or np.ptp(points) > 0
    assert cosines.overlap(Image(points), Image(points)).value is None


@pytest.mark.parametrize("rows", [1, 2, 11])
def test_recall_of_all_other_rows_is_undefined(rows: int) -> None:
    image = Image(POINTS[:rows])
    found = interval(cosines.overlap(image, Image(POINTS[:rows] * 2)))
    assert found.value is None and found.reason == f"with 10 neighbours it needs at least 12 rows, got {rows}"
    assert cosines.overlap(Image(POINTS[:12]), Image(POINTS[:12] * 2)).value == 1.0


def test_copies_are_on_no_two_sides_of_a_split() -> None:
    """Random labels of 150 texts that are encoded twice: a probe or neighbours that see the copy seem to know them."""
    codes = np.tile(RNG.integers(0, 3, 150), 2)
    twice = np.concatenate([POINTS[:150], POINTS[:150] * (1 + 1e-7 * RNG.standard_normal((150, 12)))])
    labels = [f"l{code}" for code in codes]
    found = annotations_of(of(twice, label=labels))
    assert found.labels is not None and found.labels.rows.tolist() == list(range(150))
    assert "150 distinct vectors in 300 rows: 150 are copies of other rows and left out." in found.notes
    values = measure(Image(twice), found, ["knn", "probe"])
    assert max(one.value for one in values.values()) < 0.5
    parts = [divide(of(twice, label=labels), part) for part in ("shown", "held back")]
    rows = np.concatenate([parts[0].fit, *(part.rows for part in parts)])
    assert len(np.unique(rows % 150)) == len(rows) == 150
    texts = [f"text {row % 150}" for row in range(300)]  # the same texts, with other vectors
    assert len(annotations_of(of(POINTS, label=labels, text=texts)).labels.rows) == 150


def test_copies_stay_together_in_pairs_and_queries() -> None:
    twice = np.concatenate([POINTS[:100], POINTS[:100].astype(np.float16)])
    ids = [f"r{row}" for row in range(200)]
    pairs = pd.DataFrame({"left": ids[::2], "right": ids[1::2], "score": RNG.uniform(0, 5, 100)})
    rated = VectorSet(twice, pd.DataFrame({"id": ids}), pairs, "similarity")
    sides = [set(part.rows % 100) for part in (divide(rated), divide(rated, "held back"))]
    assert not sides[0] & sides[1] and not sides[0] & set(divide(rated).fit % 100)
    queries = [f"q{row}" for row in range(40)]
    points = np.concatenate([POINTS[:20], POINTS[:20].astype(np.float16), POINTS[100:200]])
    relevance = pd.DataFrame({"left": queries, "right": ids[:40], "score": 1.0})
    search = VectorSet(points, pd.DataFrame({"id": queries + ids[:100]}), relevance, "relevance")
    sides = [set(part.rows[part.rows < 40] % 20) for part in (divide(search), divide(search, "held back"))]
    assert not sides[0] & sides[1] and len(sides[0] | sides[1]) == 20


def test_labels_that_say_nothing_and_small_classes_are_said() -> None:
    own = annotations_of(of(POINTS[:24], label=[f"l{row}" for row in range(24)]))
    assert own.labels is None and "a label of its own" in own.notes[0]
    assert divide(of(POINTS, label=[f"l{row}" for row in range(300)])).annotations.labels is None
    small = annotations_of(of(POINTS[:64], label=[None] * 4 + ["a"] * 20 + [f"b{row // 8}" for row in range(40)]))
    assert small.labels is not None and len(small.labels.rows) == 60
    assert small.notes == (
        "4 rows have no label.",
        "The most common label has 33.3 % of the 60 labelled rows.",
        "k-NN takes 7 instead of 10 neighbours, because half of the labels have at most 8 rows.",
    )


def test_layers_keep_neighbours_among_distinct_rows() -> None:
    clouds = [POINTS[:40], POINTS[:40] ** 3]
    twice = [np.concatenate([cloud, cloud]) for cloud in clouds]
    found, alone = retention(twice), retention(clouds)
    assert found is not None and alone is not None
    assert found.rows == 40 and found.to_last == alone.to_last
