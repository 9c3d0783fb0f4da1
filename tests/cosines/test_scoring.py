"""The ruler as a similarity function in sentence-transformers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isoviz import cosines
from isoviz.errors import InputError
from isoviz.models import sources

TEXTS = [
    f"{who} {what} {where}."
    for who in ("a man", "two dogs")
    for what in ("runs", "sleeps", "sings")
    for where in ("home", "now")
]


def test_the_library_searches_and_judges_with_it(tmp_path: Path) -> None:
    import torch
    from sentence_transformers import SentenceTransformer, util
    from sentence_transformers.sentence_transformer import modules
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

    transformer = modules.Transformer(sources.resolve("demo/tiny-bert").location)
    model = SentenceTransformer(
        modules=[transformer, modules.Pooling(transformer.get_embedding_dimension())], device="cpu"
    )
    vectors = model.encode(TEXTS, convert_to_tensor=True)
    ruler = cosines.ruler(vectors.numpy())
    score = cosines.similarity(ruler)
    scores = score(vectors, vectors)
    cosine = model.similarity(vectors, vectors)
    assert isinstance(scores, torch.Tensor) and scores.shape == (12, 12)
    expected = [[ruler.read(min(float(value), 1.0)).percentile for value in row] for row in cosine]
    assert scores.numpy() == pytest.approx(np.array(expected), abs=1e-4)
    hits = util.semantic_search(vectors[:3], vectors, score_function=score, top_k=5)
    usual = util.semantic_search(vectors[:3], vectors, top_k=5)
    assert [[hit["corpus_id"] for hit in row] for row in hits] == [[hit["corpus_id"] for hit in row] for row in usual]
    texts = {str(k): text for k, text in enumerate(TEXTS)}
    relevant = {key: {key} for key in texts}
    evaluator = InformationRetrievalEvaluator(texts, texts, relevant, score_functions={"ruler": score})
    assert evaluator(model)["ruler_accuracy@1"] == 1


def test_scores_rank_as_cosines_do_and_arrays_stay_arrays() -> None:
    generator = np.random.default_rng(0)
    base = generator.normal(size=(60, 12))
    points = np.concatenate([base, base + 0.3 * generator.normal(size=base.shape)])
    ruler = cosines.ruler(points, pairs=np.stack([np.arange(60), 60 + np.arange(60)], axis=1))
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    cosine = unit[0] @ unit.T
    for what in ("percentile", "probability"):
        scores = cosines.similarity(ruler, what)(points[0], points)
        assert scores.shape == (1, 120) and scores.min() >= 0 and scores.max() <= 1
        assert np.array_equal(np.argsort(scores[0]), np.argsort(cosine))
        assert getattr(ruler.read(float(cosine[60])), what) == pytest.approx(scores[0, 60], abs=1e-8)


@pytest.mark.parametrize("what", ["probability", "cosine"])
def test_it_refuses_what_the_ruler_does_not_know(what: str) -> None:
    ruler = cosines.ruler(np.random.default_rng(0).normal(size=(30, 8)))
    with pytest.raises(InputError) as error:
        cosines.similarity(ruler, what)  # type: ignore[arg-type]
    assert error.value.field == "what"
