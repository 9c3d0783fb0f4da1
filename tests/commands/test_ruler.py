"""`isoviz ruler` and its operation: which pairs are related in a task, in one's own texts and in files, and what the record says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from isoviz import tasks, vectors
from isoviz.__main__ import main
from isoviz.errors import InputError
from isoviz.jobs import queue
from isoviz.models import sources
from isoviz.models.extract import layer_views
from isoviz.operations import jobs
from isoviz.operations.access.service import of_command_line
from isoviz.operations.jobs import RULER, SetRequest
from isoviz.operations.ruler import RulerRequest, known_in, measure, of_set, texts_of_task
from isoviz.readouts import ruler as rulers
from isoviz.readouts.ruler import Ruler, near_misses, results
from isoviz.runs.store import Store
from isoviz.vectors import VectorSet, demo_sets
from isoviz.vectors.sets import TextSet
from isoviz.whatif import texts as encoded
from tests import nightly

GENERATOR = np.random.default_rng(0)


def related(texts: TextSet, least: float) -> set[tuple[str, str]]:
    """The texts of the pairs with this score or more."""
    assert texts.pairs is not None
    named = texts.columns.set_index("id")["text"]
    chosen = texts.pairs[texts.pairs["score"] >= least]
    return set(zip(named[chosen["left"]], named[chosen["right"]], strict=True))


@pytest.mark.parametrize(
    ("slug", "chosen", "words"),
    [
        ("demo/similarity", lambda rows: rows["label"] >= 4, ""),
        ("demo/paraphrase", lambda rows: rows["label"] == 1, "pairs with the label 'paraphrase'"),
        ("demo/entailment", lambda rows: rows["label"] == 0, "pairs with the label 'entailment'"),
        ("demo/qa", lambda rows: rows["id"].notna(), "each question and the text that answers it"),
    ],
)
def test_related_pairs_of_a_task(slug: str, chosen: object, words: str) -> None:
    task = tasks.get(slug)
    rows = tasks.load(task).validation.iloc[:300]
    texts, said = texts_of_task(task, rows)
    first, second = task.inputs
    assert said == words and texts.columns["text"].is_unique
    assert set(texts.columns["text"]) == set(rows[first]) | set(rows[second])
    expected = rows[chosen(rows)]  # type: ignore[operator]
    assert related(texts, 0.8 * texts.pairs["score"].max()) == set(  # type: ignore[index]
        zip(expected[first], expected[second], strict=True)
    )


def test_single_texts_are_related_by_their_labels_only_if_asked() -> None:
    task = tasks.get("demo/sentiment")
    rows = tasks.load(task).validation.iloc[:100]
    assert known_in(texts_of_task(task, rows)[0]) == ["none"]
    assert known_in(texts_of_task(task, rows, "label")[0]) == ["labels", "none"]
    for slug, labels in (("demo/sentiment", "stars"), ("demo/paraphrase", "label"), ("demo/translation", "label")):
        task = tasks.get(slug)
        with pytest.raises(InputError) as refused:
            texts_of_task(task, tasks.load(task).validation.iloc[:20], labels)
        assert refused.value.field == "labels"


def annotated(points: np.ndarray, **options: object) -> VectorSet:
    columns = pd.DataFrame({"id": [f"r{row}" for row in range(len(points))], **options.pop("columns", {})})  # type: ignore[dict-item]
    return VectorSet(points, columns, **options)  # type: ignore[arg-type]


def test_a_set_becomes_what_the_same_rows_become_by_hand() -> None:
    points = GENERATOR.normal(size=(160, 6)) + 1
    left, right = np.arange(80), np.arange(80, 160)
    pairs = pd.DataFrame({"left": [f"r{row}" for row in left], "right": [f"r{row}" for row in right]})
    score = np.linspace(0, 5, 80)
    rated = annotated(points, pairs=pairs.assign(score=score), relation="similarity")
    by_hand = np.stack([left, right], axis=1)
    assert known_in(rated) == ["pairs", "none"]
    by_score = of_set(rated, share=0.2)
    assert by_score.related == rulers.ruler(points, pairs=by_hand[score >= 4], share=0.2).related
    assert by_score.relation is not None and " 4 " in by_score.relation
    looser = of_set(rated, related_from=2.0).related
    assert looser is not None and looser.pairs == int((score >= 2).sum())
    searched = annotated(points, pairs=pairs.assign(score=1.0), relation="relevance")
    by_rank = rulers.ruler(points, pairs=by_hand, documents=right)
    assert (of_set(searched).related, of_set(searched).hits) == (
        by_rank.related,
        by_rank.hits,
    ) and by_rank.hits is not None
    assert of_set(searched, "none").related is None and of_set(searched, "none").relation is None


def test_rows_without_a_label_are_left_out() -> None:
    points = GENERATOR.normal(size=(60, 6))
    labels: list[str | None] = ["a", "b", None] * 20
    ruler = of_set(annotated(points, columns={"label": labels}))
    having = [row for row, label in enumerate(labels) if label is not None]
    assert ruler == rulers.ruler(points[having], labels=["a", "b"] * 20, relation=ruler.relation)
    with pytest.raises(InputError) as refused:
        of_set(annotated(points, columns={"label": range(60)}), "labels")
    assert refused.value.field == "labels"


def test_the_quantiles_of_related_pairs_are_kept() -> None:
    points = GENERATOR.normal(size=(60, 6)) + 0.5
    pairs = np.arange(60).reshape(30, 2)
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    ruler = rulers.ruler(points, pairs=pairs)
    assert ruler.related is not None
    expected = np.quantile((unit[pairs[:, 0]] * unit[pairs[:, 1]]).sum(axis=1), ruler.percentile)
    np.testing.assert_allclose(ruler.related.quantiles, expected)


def test_a_model_on_a_task_with_its_fingerprint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["ruler", "--model", "demo/tiny-bert", "--task", "demo/paraphrase", "--max-eval", "200", "--layer", "2"]
    assert main([*words, "--cosine", "0.62", "--out", str(tmp_path / "ruler.json"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    ruler = Ruler.model_validate_json((tmp_path / "ruler.json").read_text())
    assert document["relation"] == "pairs with the label 'paraphrase'" == ruler.relation
    assert document["model"] == "demo/tiny-bert" and document["readings"][0]["cosine"] == 0.62
    cloud = document["cloud"]
    assert cloud["model_fingerprint"] == sources.resolve("demo/tiny-bert").fingerprint
    assert (cloud["task"], cloud["split"], cloud["layer"], cloud["pooling"]) == (
        "demo/paraphrase",
        "validation",
        2,
        "mean",
    )
    assert document["related"]["pairs"] == tasks.load(tasks.get("demo/paraphrase")).validation["label"][:200].sum()
    views = layer_views(sources.resolve("demo/tiny-bert"), [list(near_misses.texts())], poolings=["mean"], layers=[2])
    expected = near_misses.near_misses(views.points(2, "mean")).above(document["near_misses"]["cosine"])
    assert document["near_misses"] == expected


def test_own_texts_with_pairs_or_labels(tmp_path: Path) -> None:
    lines = [f"The {name} number {row} is in the house today." for row in range(20) for name in ("cat", "dog")]
    frame = pd.DataFrame({"id": range(40), "text": lines, "label": ["cat", "dog"] * 20})
    frame.to_csv(tmp_path / "own.csv", index=False)
    pairs = pd.DataFrame({"left": range(0, 40, 2), "right": range(1, 40, 2), "score": [1.0] * 19 + [0.9]})
    pairs.to_csv(tmp_path / "pairs.csv", index=False)
    request = {"model": "demo/tiny-bert", "texts": str(tmp_path / "own.csv")}
    alone = measure(RulerRequest(**request)).ruler
    assert alone.related is None and alone.n == 40 and alone.cloud is not None and alone.cloud["texts"] == "own.csv"
    assert measure(RulerRequest(**request, pairs=str(tmp_path / "pairs.csv"))).ruler.related.pairs == 20  # type: ignore[union-attr]
    labelled = measure(RulerRequest(**request, labels="label")).ruler
    assert labelled.related is not None and labelled.related.pairs == 2 * 190


def test_empty_texts_are_left_out_and_counted(tmp_path: Path) -> None:
    lines = [f"The cat number {row} is in the house." for row in range(20)]
    given = [*lines[:10], "", " ", *lines[10:], *[""] * 8]
    frame = pd.DataFrame({"id": range(30), "text": given})
    for name, rows in (("all", frame), ("filled", frame[frame["text"].isin(lines)])):
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
    related = pd.DataFrame({"left": [0, *range(10)], "right": [10, *range(12, 22)], "score": [1.0] * 10 + [0.9]})
    related.to_csv(tmp_path / "pairs.csv", index=False)
    texts, filled = (
        measure(RulerRequest(model="demo/tiny-bert", texts=str(tmp_path / f"{name}.csv"), pairs=pairs))
        for name, pairs in (("all", str(tmp_path / "pairs.csv")), ("filled", None))
    )
    assert "10 of 30 texts are empty and were left out" in texts.notes and filled.notes == ()
    assert texts.ruler.n == 20 and texts.ruler.related is not None and texts.ruler.related.pairs == 10
    assert [one.cosine for one in texts.ruler.floor] == pytest.approx(
        [one.cosine for one in filled.ruler.floor], abs=0.01
    )
    key = vectors.keep(vectors.read_texts(tmp_path / "all.csv"))
    facts, _ = encoded.compute(encoded.TextsRequest(key, "demo/tiny-bert"), lambda *_: None)
    assert facts["n"] == 20 and facts["name"] == "all.csv, without 10 empty texts"


@pytest.mark.parametrize("slug", nightly.cases(demo_sets.RECORDED, always=("demo/similarity",)))
def test_the_rulers_that_ship_are_those_of_this_version(slug: str) -> None:
    request = SetRequest(demo_sets.RECORDED[slug])
    shipped, now = jobs.find(request), Ruler.model_validate(jobs.facts_of(request)["ruler"])
    assert shipped is not None and shipped.related is not None and now.related is not None
    assert (shipped.corpus, shipped.relation, shipped.cloud) == (now.corpus, now.relation, now.cloud)
    np.testing.assert_allclose([one.cosine for one in shipped.floor], [one.cosine for one in now.floor], rtol=1e-3)
    np.testing.assert_allclose(shipped.related.auc, now.related.auc, atol=2e-3)
    assert shipped.related.threshold is not None and now.related.threshold is not None
    assert (shipped.hits is None) == (now.hits is None) == (slug != demo_sets.RETRIEVAL)
    assert shipped.related.threshold.cosine == pytest.approx(now.related.threshold.cosine, abs=2e-3)


def test_a_search_is_asked_whether_its_best_hit_is_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents = GENERATOR.normal(size=(60, 8))
    points = np.concatenate([documents, documents + GENERATOR.normal(size=(60, 8))])
    pd.DataFrame({"id": range(120), "vector": list(points)}).to_parquet(tmp_path / "set.parquet")
    pairs = pd.DataFrame({"query": range(60, 120), "document": range(60), "relevance": 1})
    pairs.to_csv(tmp_path / "relevance.csv", index=False)
    words = ["ruler", "--embeddings", str(tmp_path / "set.parquet"), "--pairs", str(tmp_path / "relevance.csv")]
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["related"]["share"] == pytest.approx(1 / 60) and document["hits"]["queries"] == 60
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "Is the best hit right? Of 60 queries, the best of 60 documents is relevant for" in said
    assert "cosine of the best hit" in said


def test_a_deleted_set_takes_its_rulers_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOVIZ_HOME", str(tmp_path))
    key, other = (vectors.keep(annotated(GENERATOR.normal(size=(30, 4)))) for _ in range(2))
    for one in (key, other):
        request = SetRequest(one)
        results.STORE.publish(queue.content_key(RULER, request.as_json()), jobs.facts_of(request), {})
    store = Store(tmp_path / "store")
    of_command_line(store).forget_vectors(key)
    store.close()
    assert jobs.find(SetRequest(key)) is None and jobs.find(SetRequest(other)) is not None
