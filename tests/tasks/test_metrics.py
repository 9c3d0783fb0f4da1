"""Task metrics on cases whose answer is known by hand."""

from __future__ import annotations

import numpy as np
import pytest

from isoviz import tasks
from isoviz.tasks import metrics
from isoviz.tasks.chance import CORRELATIONS
from isoviz.tasks.kinds import KINDS


def test_every_task_names_metrics_of_its_kind():
    assert len(tasks.catalogue()) >= 16
    for task in tasks.catalogue().values():
        assert task.primary in task.metrics
        assert all(task.kind in metrics.METRICS[name].kinds for name in task.metrics)
        assert 1 <= len(task.columns) <= (3 if task.kind == "embedding" else 2)  # a triplet has three


def test_correlations_are_the_textbook_ones():
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 4, 30).astype(float)  # many ties
    predicted = np.round(labels + generator.normal(size=30), 1)

    def ranks(values):
        return np.array([(values < v).sum() + ((values == v).sum() + 1) / 2 for v in values])

    scores = metrics.compute(("pearson", "spearman", "mse"), labels, predicted, "regression")
    assert scores["pearson"] == pytest.approx(np.corrcoef(labels, predicted)[0, 1])
    assert scores["spearman"] == pytest.approx(np.corrcoef(ranks(labels), ranks(predicted))[0, 1])
    assert scores["mse"] == pytest.approx(sum((a - b) ** 2 for a, b in zip(labels, predicted, strict=True)) / 30)


@pytest.mark.parametrize(
    ("labels", "predicted"),
    [([1.0, 2, 3], [2.0, 2, 2]), ([1.0, 1], [0.0, 1]), ([1.0], [1.0]), ([1.0, 2], [1.0, np.nan])],
)
def test_correlations_of_constants_are_undefined(labels, predicted, recwarn):
    scores = metrics.compute(("pearson", "spearman"), np.array(labels), np.array(predicted), "regression")
    assert scores == {"pearson": None, "spearman": None}
    # the garbage collector may report unclosed files of other tests here
    assert not [item for item in recwarn.list if not issubclass(item.category, ResourceWarning)]


@pytest.mark.parametrize(
    ("answers", "got", "exact", "f1"),
    [
        (["the Denver Broncos"], "Denver Broncos!", 1, 1),
        (["Denver Broncos"], "Broncos", 0, 2 / 3),
        (["x", "Santa Clara", "Clara"], "clara", 1, 1),
        (["Santa Clara, California"], "", 0, 0),
        (["the"], "an", 1, 1),  # both empty after normalisation
        ([], "", 1, 1),
        ([], "something", 0, 0),
        (["a a b b"], "b b b", 0, 0.8),  # the articles go: b b against b b b
        (["1,000 km²"], "1000 km²", 1, 1),
    ],
)
def test_answers_by_hand(answers, got, exact, f1):
    scores = metrics.compute(("exact_match", "f1"), [answers], [got], "span")
    assert scores == pytest.approx({"exact_match": exact, "f1": f1})


TARGETS = ["The cat sat on the mat.", "Dogs bark loudly at night in the village."]
WRITTEN = ["The cat sat on a mat.", "Dogs are barking at night."]


def test_translations_are_sacrebleus_own():
    import sacrebleu

    scores = metrics.compute(("bleu", "chrf"), TARGETS, WRITTEN, "seq2seq")
    assert scores["bleu"] == pytest.approx(sacrebleu.corpus_bleu(WRITTEN, [TARGETS]).score)
    assert scores["chrf"] == pytest.approx(sacrebleu.corpus_chrf(WRITTEN, [TARGETS]).score)
    assert metrics.compute(("bleu",), TARGETS, TARGETS, "seq2seq")["bleu"] == pytest.approx(100)
    assert metrics.compute(("bleu",), TARGETS, ["", ""], "seq2seq") == {"bleu": 0.0}
    assert metrics.METRICS["bleu"].highest == 100


def test_summaries_are_rouge_scores_own():
    from rouge_score.rouge_scorer import RougeScorer

    names = ("rouge1", "rouge2", "rougeL", "rougeLsum")
    scorer = RougeScorer(names, use_stemmer=True)
    lines = ["One thing happened.\nThen another did.", "Nothing more was said.\nIt ended."]
    written = ["Then another one did.\nOne thing happened.", "It ended.\nNothing."]
    scores = metrics.compute(names, lines, written, "seq2seq")
    for name in names:
        each = [scorer.score(right, got)[name].fmeasure for right, got in zip(lines, written, strict=True)]
        assert scores[name] == pytest.approx(np.mean(each))
    assert scores["rougeLsum"] > scores["rougeL"]  # sentences in another order
    spaces = [text.replace("\n", " ") for text in written]
    assert metrics.compute(names, lines, spaces, "seq2seq") == pytest.approx(scores)
    assert metrics.compute(names, lines, ["", ""], "seq2seq") == dict.fromkeys(names, 0.0)


def test_signatures_say_what_was_computed():
    signatures = metrics.signature(("bleu", "chrf", "rougeLsum", "accuracy"))
    assert set(signatures) == {"bleu", "chrf", "rougeLsum"}
    assert signatures["bleu"].startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")


@pytest.mark.parametrize("kind", ["classification", "regression", "span", "seq2seq"])
def test_no_rows_of_any_kind(kind):
    names = [name for name, metric in metrics.METRICS.items() if kind in metric.kinds]
    assert metrics.compute(names, [], [], kind) == dict.fromkeys(names)
    with pytest.raises(ValueError, match="1 references but 0 predictions"):
        metrics.compute(names, [1], [], kind)


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_scores_of_classes_are_scikit_learns(classes):
    from sklearn import metrics as reference

    generator = np.random.default_rng(classes)
    for n in (1, 2, 5, 400):
        for high in (1, classes - 1, classes):  # one class predicted throughout, and a class that is never predicted
            labels, predicted = generator.integers(0, classes, n), generator.integers(0, high, n)
            got = metrics.compute(["accuracy", "matthews", "f1", "macro-f1"], labels, predicted)
            assert got["accuracy"] == pytest.approx(reference.accuracy_score(labels, predicted), abs=1e-15)
            assert got["matthews"] == pytest.approx(reference.matthews_corrcoef(labels, predicted), abs=1e-12)
            f1 = reference.f1_score(labels == 1, predicted == 1, zero_division=0.0)
            assert got["f1"] == pytest.approx(f1, abs=1e-15)
            macro = reference.f1_score(labels, predicted, average="macro", zero_division=0.0)
            assert got["macro-f1"] == pytest.approx(macro, abs=1e-12)
            counts = reference.confusion_matrix(labels, predicted, labels=range(classes))
            assert np.array_equal(metrics.confusion_counts(labels, predicted, classes), counts)


def test_lists_of_runs_know_the_metrics_by_which_kinds_judge_chance() -> None:
    assert set(CORRELATIONS) == {kind.correlation for kind in KINDS.values()} - {""}
