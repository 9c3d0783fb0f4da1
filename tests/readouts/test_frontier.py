"""The compression frontier: neighbours and questions counted by plain loops, bytes, the smallest harmless way, and its Python."""

import numpy as np
import pytest

from isoviz.errors import InputError
from isoviz.readouts import Annotations
from isoviz.readouts.frontier import NEIGHBOUR_QUERIES, Frontier, Stored, frontier, widths
from isoviz.readouts.retrieval import Relevance
from isoviz.statistics.paired_bootstrap import Difference


@pytest.fixture(scope="module")
def points() -> np.ndarray:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(320, 8)) @ generator.normal(size=(8, 32)) + 0.3 * generator.normal(size=(320, 32))
    return x.astype(np.float32)


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def compressed(code: str, points: np.ndarray) -> np.ndarray:
    """What the copied Python makes."""
    scope: dict[str, np.ndarray] = {}
    exec(code.replace("...", "points", 1), {"points": points}, scope)
    return scope["compressed"]


def test_neighbours_kept_are_those_of_plain_loops_on_the_copied_code(points: np.ndarray) -> None:
    found = frontier(points)
    assert len(found.ways) == 4 * 4 * 3 and widths(32) == [32, 16, 8] and widths(10) == [10]
    some = np.arange(NEIGHBOUR_QUERIES) * len(points) // NEIGHBOUR_QUERIES
    before = unit(points.astype(np.float64)) @ unit(points.astype(np.float64)).T
    for one in found.ways[::5]:
        coded = unit(compressed(one.python("..."), points))
        assert coded.shape[1] == one.dimensions and one.bytes == np.ceil(one.dimensions * one.bits / 8)
        after, shares = coded @ coded.T, []
        for row in some:
            old, new = (np.delete(matrix[row], row) for matrix in (before, after))
            last = np.sort(new)[-10]
            above, tied = new > last + 1e-6, np.abs(new - last) <= 1e-6
            near = old >= np.sort(old)[-10] - 1e-6
            shares.append(((near & above).sum() + (near & tied).sum() * (10 - above.sum()) / tied.sum()) / 10)
        assert one.values["neighbours"] == pytest.approx(np.mean(shares), abs=1e-4), one.words
    best = found.smallest
    assert best is not None and best.bytes < 128 and found.sentence.startswith("Smallest that loses at most 1 point")
    assert not any(
        other.bytes < best.bytes and (other.changes["neighbours"].low or -1) >= -0.01 for other in found.ways
    )


def test_questions_judge_where_there_are_some_and_fit_nothing(points: np.ndarray) -> None:
    """Each question is a document with noise; transforms are fitted on documents only."""
    questions = points[:40] + np.random.default_rng(1).normal(size=(40, 32)).astype(np.float32)
    every = np.concatenate([points, questions])
    relevance = Relevance(np.arange(320, 360), np.arange(320), np.arange(40), np.arange(40), np.ones(40))
    found = frontier(every, Annotations(queries=relevance))
    assert found.judged == ["ndcg_cosine", "recall10_cosine"] and (found.units, found.rows) == (40, 320)
    one = next(way for way in found.ways if (way.rotation, way.bits, way.dimensions) == ("whitening", 4, 16))
    scope: dict[str, object] = {}
    exec(one.python("...").replace("...", "documents", 1), {"documents": points}, scope)
    chain = scope["chain"]
    scores = unit(chain.transform(questions)) @ unit(chain.transform(points)).T  # type: ignore[attr-defined]
    ranks = (scores > scores[np.arange(40), np.arange(40)][:, None] + 1e-6).sum(axis=1)
    gains = np.where(ranks < 10, 1 / np.log2(ranks + 2), 0)
    assert one.values["ndcg_cosine"] == pytest.approx(gains.mean(), abs=1e-4)
    assert one.values["recall10_cosine"] == pytest.approx((ranks < 10).mean(), abs=1e-4)
    full = next(way for way in found.ways if (way.rotation, way.bits, way.dimensions) == ("none", 32, 32))
    change = one.values["ndcg_cosine"] - full.values["ndcg_cosine"]  # type: ignore[operator]
    assert one.changes["ndcg_cosine"].value == pytest.approx(change)


def test_a_loss_within_the_margin_whose_interval_is_not_is_not_harmless() -> None:
    def way(bits: int, low: float) -> Stored:
        return Stored("none", bits, 32, {"neighbours": 0.995}, {"neighbours": Difference(-0.005, low, 0.0, 300)})

    unclear = Frontier([way(1, -0.02), way(32, 0.0)], 32, ["neighbours"], 300, 300, 0.01)
    assert unclear.sentence.startswith("Nothing smaller than float32 in 32 dimensions (128 bytes)")
    harmless = Frontier([way(1, -0.009), way(32, 0.0)], 32, ["neighbours"], 300, 300, 0.01)
    assert "4 bytes per vector instead of 128 (32 times smaller; 0.04 GB for ten million)" in harmless.sentence


def test_too_few_rows(points: np.ndarray) -> None:
    with pytest.raises(InputError, match="at least 12 rows"):
        frontier(points[:8])
