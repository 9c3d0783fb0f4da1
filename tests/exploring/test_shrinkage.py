"""IsoScore* of a view against Σ_S and eigenvalues taken plainly from the encoder in evaluation mode, and against a run's own."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from numpy.typing import NDArray

from isoviz import tasks
from isoviz.errors import InputError
from isoviz.exploring import measuring, shrinkage
from isoviz.exploring.request import ViewRequest
from isoviz.metrics.record import CloudRecord
from isoviz.metrics.streaming import CovarianceAccumulator
from isoviz.models import extract
from isoviz.models.views import Views
from isoviz.training.measuring import layers_record
from isoviz.training.shrinkage import SampledShrinkage
from tests import tiny
from tests.metrics.reference_clouds import isoscore_by_eigenvalues
from tests.tiny import TinyModels

ROWS, SEED = 20, 3
Clouds = list[NDArray[np.float64]]


def score(cloud: NDArray[np.float64], sigma: NDArray[np.float64]) -> float:
    return isoscore_by_eigenvalues(0.8 * np.cov(cloud.T) + 0.2 * sigma)


def tokens_of(model: str, texts: list[str]) -> Clouds:
    """Every unpadded token of each layer, from the embeddings on."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    network = transformers.AutoModel.from_pretrained(model).eval()
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.inference_mode():
        states = network(**batch, output_hidden_states=True).hidden_states
    return [state[batch["attention_mask"].bool()].double().numpy() for state in states]


def texts_of(request: ViewRequest, split: str) -> list[str]:
    rows = tasks.load(tasks.get(request.task), request.data)
    frame = rows.train if split == "train" else rows.validation
    return list(map(str, frame["sentence"]))


def compute(request: ViewRequest) -> dict[str, Any]:
    return measuring.compute(request, lambda done, total, text: None)[0]


def stars(facts: dict[str, Any]) -> list[float | None]:
    return [record.number("isoscore_star") for record in records(facts) if record.pooling == "tokens"]


def records(facts: dict[str, Any]) -> list[CloudRecord]:
    return [CloudRecord.model_validate(entry) for entry in facts["entries"]]


@pytest.fixture(scope="module")
def request_(tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory) -> ViewRequest:
    """With much dropout, which evaluation mode leaves out."""
    folder = tiny.write_cola(tmp_path_factory.mktemp("data") / "cola")
    return ViewRequest(str(tiny_models("bert", 0.5)), "glue/cola", str(folder), max_rows=ROWS, seed=SEED)


@pytest.fixture(scope="module")
def seen(request_: ViewRequest) -> tuple[dict[str, Any], Clouds, Clouds]:
    """The view, its tokens, and those of the training rows that Σ_S is from."""
    facts = compute(request_)
    drawn = np.random.default_rng((SEED, 1)).permutation(64)[:ROWS]
    training = texts_of(request_, "train")
    own = tokens_of(request_.model, texts_of(request_, "validation")[:ROWS])
    return facts, own, tokens_of(request_.model, [training[row] for row in drawn])


def test_each_layer_has_the_training_tokens_of_its_own(seen: tuple[dict[str, Any], Clouds, Clouds]) -> None:
    facts, own, training = seen
    expected = [score(cloud, np.cov(part.T)) for cloud, part in zip(own, training, strict=True)]
    np.testing.assert_allclose(np.array(stars(facts), dtype=float), expected, rtol=1e-5)
    plain = [record.number("isoscore") for record in records(facts) if record.pooling == "tokens"]
    assert all(abs(star - score_) > 1e-3 for star, score_ in zip(expected, plain, strict=True))  # Σ_S counts
    reasons = {record.readings["isoscore_star"].undefined for record in records(facts) if record.pooling != "tokens"}
    assert reasons == {shrinkage.OF_TOKENS}


def test_all_layers_together_are_what_a_run_would_report(seen: tuple[dict[str, Any], Clouds, Clouds]) -> None:
    facts, own, training = seen
    together = CloudRecord.model_validate(facts["layers"])
    cloud, part = (np.concatenate(clouds[1:]) for clouds in (own, training))  # not the embedding output
    assert (together.cloud, together.layer, together.n) == ("layers", None, len(cloud))
    assert together.number("isoscore_star") == pytest.approx(score(cloud, np.cov(part.T)), rel=1e-5)
    assert together.dimensions is not None and together.dimensions.mean_norm == pytest.approx(
        np.linalg.norm(cloud.mean(axis=0)), rel=1e-5
    )
    clouds = [
        [CovarianceAccumulator(16), CovarianceAccumulator(16)],
        [CovarianceAccumulator(16), CovarianceAccumulator(16)],
    ]
    for streams, points in zip(clouds, (own, training), strict=True):
        for stream, layer in zip(streams, points[1:], strict=True):
            stream.update(layer)
    reported = layers_record(clouds[0], SampledShrinkage(ROWS, ROWS, CovarianceAccumulator.union(clouds[1]).covariance))
    assert together.number("isoscore_star") == pytest.approx(reported.number("isoscore_star"), rel=1e-5)
    assert together.readings.keys() == reported.readings.keys()


def test_a_view_of_the_training_split_says_what_it_shares(request_: ViewRequest) -> None:
    facts = compute(dataclasses.replace(request_, split="train"))
    drawn = np.random.default_rng((SEED, 1)).permutation(64)[:ROWS]
    shared = len(set(range(ROWS)) & set(drawn.tolist()))
    assert 0 < shared < ROWS
    source = f"the view's own split: the view contains {shared} of them"
    assert source in facts["shrinkage"]["words"]


def test_training_texts_that_cannot_be_read_leave_the_rest_of_the_view(
    request_: ViewRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer_views = extract.layer_views

    def refusing(source: Any, texts: Any, **options: Any) -> Views:
        if options["poolings"] == ("tokens",):
            raise InputError("data: 3 rows have no token", field="data")
        return layer_views(source, texts, **options)

    monkeypatch.setattr(extract, "layer_views", refusing)
    facts = compute(request_)
    why = "its training rows cannot be read: data: 3 rows have no token"
    assert facts["shrinkage"] == {"reason": why} and facts["layers"] is None
    assert stars(facts) == [None] * 3
    assert {record.readings["isoscore_star"].undefined for record in records(facts)} == {why}
    assert all(record.number("twonn") for record in records(facts) if record.pooling == "tokens" and record.layer == 2)


def test_training_rows_are_drawn_by_the_seed() -> None:
    request = ViewRequest("m", "glue/cola", max_rows=7, seed=1)
    rows = shrinkage.training_rows(request, 50)
    assert len(set(rows)) == 7 and (np.diff(rows) > 0).all() and rows.max() < 50
    assert (rows == shrinkage.training_rows(request, 50)).all()
    assert (rows != shrinkage.training_rows(dataclasses.replace(request, seed=2), 50)).any()
    assert shrinkage.training_rows(request, 4).tolist() == [0, 1, 2, 3]
