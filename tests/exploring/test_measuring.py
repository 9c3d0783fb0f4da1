"""What a view holds equals what its parts give when they are called here, and each array its definition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from isoviz import metrics, tasks
from isoviz.exploring import measuring, points
from isoviz.exploring.request import ViewRequest
from isoviz.metrics.record import CloudRecord
from isoviz.metrics.streaming import CovarianceAccumulator
from isoviz.models import sources
from isoviz.models.adapter import load_tokenizer
from isoviz.models.extract import layer_views
from isoviz.models.profile import profile
from isoviz.models.views import TokenView, Views
from tests import tiny
from tests.tiny import TinyModels

ROWS = 20


@pytest.fixture(scope="module")
def computed(
    tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], dict[str, NDArray[Any]], Views, list[tuple[int, int, str]]]:
    """The facts and arrays of a view, the same clouds extracted directly, and the progress reports."""
    from tests.tiny import write_cola

    folder = write_cola(tmp_path_factory.mktemp("data") / "cola")
    reports: list[tuple[int, int, str]] = []
    request = ViewRequest(str(tiny_models("bert")), "glue/cola", str(folder), max_rows=ROWS, seed=3)
    facts, arrays = measuring.compute(request, lambda *words: reports.append(words))
    frame = tasks.load(tasks.get("glue/cola"), folder).validation.iloc[:ROWS]
    views = layer_views(
        sources.resolve(request.model), [frame["sentence"].tolist()], poolings=("cls", "mean", "tokens"), seed=3
    )
    return facts, arrays, views, reports


def test_numbers_match_the_profile(computed: Any) -> None:
    facts, _, views, _ = computed
    records = [CloudRecord.model_validate(entry) for entry in facts["entries"]]
    plain = [
        record.model_copy(
            update={"readings": {slug: of for slug, of in record.readings.items() if slug != "isoscore_star"}}
        )
        for record in records  # see test_shrinkage.py
    ]
    assert plain == profile(views, split="validation", seed=3)
    assert (facts["rows"], facts["rows_in_split"], facts["depth"]) == (ROWS, 32, 2)
    assert facts["token_sample"] == len(views.tokens[2].sample)
    assert [(entry["pooling"], entry["layer"]) for entry in facts["entries"]] == [
        (pooling, layer) for pooling in ("cls", "mean", "tokens") for layer in range(3)
    ]


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_arrays_of_a_cloud(pooling: str, computed: Any) -> None:
    _, arrays, views, _ = computed
    points = views.clouds[1, pooling].astype(np.float64)
    singular = np.linalg.svd(points - points.mean(axis=0), compute_uv=False) ** 2
    np.testing.assert_allclose(arrays[f"1.{pooling}.ev"], np.cumsum(singular)[:16] / singular.sum(), rtol=1e-6)
    np.testing.assert_allclose(arrays[f"1.{pooling}.sigma"], points.std(axis=0), rtol=1e-5)
    np.testing.assert_allclose(arrays[f"1.{pooling}.mean"], points.mean(axis=0), rtol=1e-5, atol=1e-7)
    assert f"1.{pooling}.correlation" not in arrays


def test_arrays_of_the_tokens_are_of_all_tokens(computed: Any) -> None:
    _, arrays, views, _ = computed
    points = views.tokens[2].sample.astype(np.float64)  # so few tokens that the sample holds all
    assert len(points) == views.tokens[2].stream.count
    np.testing.assert_allclose(arrays["2.tokens.sigma"], points.std(axis=0), rtol=1e-5)
    np.testing.assert_allclose(arrays["2.tokens.ev"], metrics.explained_variance(points), rtol=1e-9)
    assert len(arrays["2.tokens.prompts"]) == ROWS
    expected = metrics.prompt_entropy(points, views.tokens[2].groups)
    assert np.nanmean(arrays["2.tokens.prompts"]) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("pooling", ["cls", "mean", "tokens"])
def test_correlations_of_the_last_layer_are_in_their_order(pooling: str, computed: Any) -> None:
    _, arrays, views, _ = computed
    cells, order = arrays[f"2.{pooling}.correlation"], arrays[f"2.{pooling}.order"]
    assert sorted(order) == list(range(16)) and cells.dtype == np.uint8
    plain = np.empty((16, 16))
    plain[np.ix_(order, order)] = cells / 255
    expected = np.abs(np.corrcoef(views.points(2, pooling).T.astype(np.float64)))
    np.testing.assert_allclose(plain, expected, atol=0.5 / 255 + 1e-9)


def test_clouds_of_every_layer_are_kept_small_with_what_their_points_are(computed: Any) -> None:
    _, arrays, views, _ = computed
    for layer in range(3):
        assert arrays[f"{layer}.cls.cloud"].dtype == np.float16
        np.testing.assert_allclose(arrays[f"{layer}.cls.cloud"], views.clouds[layer, "cls"], rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(arrays[f"{layer}.tokens.cloud"], views.tokens[layer].sample, rtol=1e-3, atol=1e-3)
    rows = points.unpacked(arrays[points.ROWS])
    assert list(rows.columns) == ["row", "sentence", "label", "length"] and rows["row"].tolist() == list(range(ROWS))
    assert set(rows["label"]) == {"unacceptable", "acceptable"} and (rows["length"] == views.lengths).all()
    tokens = points.unpacked(arrays[points.TOKENS])
    assert len(tokens) == len(arrays["2.tokens.cloud"]) and (tokens["row"] == views.tokens[2].groups).all()
    first = tokens[tokens["row"] == 0]
    assert first["token"].tolist() == ["[CLS]", *rows["sentence"][0].split(), "[SEP]"]


def test_too_many_rows_are_sampled_with_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "CLOUD_POINTS", 7)
    cloud = np.arange(40, dtype=np.float32).reshape(20, 2)
    arrays = _points_of(cloud)
    rows = points.unpacked(arrays[points.ROWS])["row"].to_numpy()
    assert len(set(rows)) == 7 and (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(arrays["0.cls.cloud"], cloud[rows])
    monkeypatch.setattr(measuring, "CLOUD_BYTES", 2 * 2 * 3)  # three rows of two dimensions in half precision
    assert arrays["0.cls.cloud"].shape == (7, 2) and _points_of(cloud)["0.cls.cloud"].shape == (3, 2)


def _points_of(cloud: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    """The stored points of a cloud with both rows and tokens."""
    n, d = cloud.shape
    numbers = np.arange(n)
    tokens = {0: TokenView(CovarianceAccumulator(d), cloud, cloud, numbers, numbers)}
    views = Views("made up", n, 0, np.full(n, 3), 8, 0, "cpu", {(0, "cls"): cloud}, tokens, ())
    return measuring.points_of(views, pd.DataFrame({"row": numbers}), [f"t{number}" for number in numbers])


def test_cosines_are_counted_over_distinct_pairs() -> None:
    points = np.random.default_rng(1).standard_normal((30, 3)) + 1
    points[4] = 0  # no direction, no pair
    counts = measuring.cosine_counts(points)
    expected = np.zeros(measuring.COSINE_BINS, dtype=int)
    for i in range(30):
        for j in range(i + 1, 30):
            if 4 not in (i, j):
                cosine = points[i] @ points[j] / np.linalg.norm(points[i]) / np.linalg.norm(points[j])
                expected[min(int((cosine + 1) / 2 * len(expected)), len(expected) - 1)] += 1
    assert counts.sum() == 29 * 28 // 2
    assert np.abs(counts - expected).sum() <= 2  # a cosine on an edge may fall to either side


@pytest.mark.parametrize("kind", ["regression", "span", "seq2seq"])
def test_every_kind_of_task_is_checked(tiny_models: TinyModels, tmp_path: Path, kind: str) -> None:
    request = ViewRequest(str(tiny_models("bert")), tiny.TASKS[kind], str(tiny.write(kind, tmp_path)), max_rows=8)
    facts, arrays = measuring.compute(request, lambda done, total, text: None)
    task = tasks.get(request.task)
    tokenizer = load_tokenizer(sources.resolve(request.model))
    frame = tasks.load(task, request.data).validation.iloc[:8]
    # pairs, question and context, the source alone of a translation
    read = [frame[name].tolist() for name in (task.columns[:1] if kind == "seq2seq" else task.columns)]
    lengths = [len(ids) for ids in tokenizer(*read)["input_ids"]]
    assert {entry["n"] for entry in facts["entries"] if entry["pooling"] == "tokens"} == {sum(lengths)}
    assert facts["rows"] == 8
    assert arrays
