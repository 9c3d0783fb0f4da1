"""Task metrics on cases whose answer is known by hand."""

from __future__ import annotations

import numpy as np
import pytest

from isoviz import tasks
from isoviz.tasks import metrics


@pytest.mark.parametrize(
    ("labels", "predicted", "accuracy", "matthews", "f1"),
    [
        ([0, 1, 0, 1], [0, 1, 0, 1], 1.0, 1.0, 1.0),
        ([0, 1, 0, 1], [1, 0, 1, 0], 0.0, -1.0, 0.0),
        ([0, 1, 1, 1], [1, 1, 1, 1], 0.75, 0.0, 6 / 7),
        ([1, 1, 0, 0], [0, 0, 0, 0], 0.5, 0.0, 0.0),
        ([1, 1, 1, 0], [1, 1, 0, 0], 0.75, 1 / np.sqrt(3), 0.8),
    ],
)
def test_by_hand(labels, predicted, accuracy, matthews, f1):
    found = metrics.compute(("accuracy", "matthews", "f1"), np.array(labels), np.array(predicted))
    assert found == pytest.approx({"accuracy": accuracy, "matthews": matthews, "f1": f1})


def test_no_rows_is_undefined():
    assert metrics.compute(("accuracy",), np.array([]), np.array([])) == {"accuracy": None}


def test_majority_is_the_training_sets():
    found = metrics.majority(("accuracy", "matthews"), np.array([1, 1, 0]), np.array([0, 0, 0, 1]))
    assert found == {"accuracy": 0.25, "matthews": 0.0}


def test_every_task_names_metrics_of_its_kind():
    assert len(tasks.catalogue()) >= 16
    for task in tasks.catalogue().values():
        assert task.primary in task.metrics
        assert all(task.kind in metrics.METRICS[name].kinds for name in task.metrics)
        assert 1 <= len(task.columns) <= 2


def test_macro_f1_counts_classes_that_were_never_predicted():
    found = metrics.compute(("macro-f1", "accuracy"), [0, 0, 1, 2], [0, 0, 0, 2])
    assert found == pytest.approx({"macro-f1": (0.8 + 0 + 1) / 3, "accuracy": 0.75})


@pytest.mark.parametrize("seed", range(3))
def test_correlations_are_the_textbook_ones(seed):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 4, 30).astype(float)  # many ties
    predicted = np.round(labels + generator.normal(size=30), 1)

    def ranks(values):
        return np.array([(values < v).sum() + ((values == v).sum() + 1) / 2 for v in values])

    found = metrics.compute(("pearson", "spearman", "mse"), labels, predicted, "regression")
    assert found["pearson"] == pytest.approx(np.corrcoef(labels, predicted)[0, 1])
    assert found["spearman"] == pytest.approx(np.corrcoef(ranks(labels), ranks(predicted))[0, 1])
    assert found["mse"] == pytest.approx(sum((a - b) ** 2 for a, b in zip(labels, predicted, strict=True)) / 30)


@pytest.mark.parametrize(
    ("labels", "predicted"),
    [([1.0, 2, 3], [2.0, 2, 2]), ([1.0, 1], [0.0, 1]), ([1.0], [1.0]), ([1.0, 2], [1.0, np.nan])],
)
def test_correlations_of_constants_are_undefined(labels, predicted, recwarn):
    found = metrics.compute(("pearson", "spearman"), np.array(labels), np.array(predicted), "regression")
    assert found == {"pearson": None, "spearman": None}
    # what others left open may be swept up, and told, at this moment
    assert not [one for one in recwarn.list if not issubclass(one.category, ResourceWarning)]


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
    found = metrics.compute(("exact_match", "f1"), [answers], [got], "span")
    assert found == pytest.approx({"exact_match": exact, "f1": f1})


def test_answers_are_averaged_over_questions():
    found = metrics.compute(("f1", "exact_match"), [["a b c"], ["d"]], ["b", "d"], "span")
    assert found == pytest.approx({"f1": (2 * 1 / 3 + 1) / 2, "exact_match": 0.5})


TARGETS = ["The cat sat on the mat.", "Dogs bark loudly at night in the village."]
WRITTEN = ["The cat sat on a mat.", "Dogs are barking at night."]


def test_translations_are_sacrebleus_own():
    import sacrebleu

    found = metrics.compute(("bleu", "chrf"), TARGETS, WRITTEN, "seq2seq")
    assert found["bleu"] == pytest.approx(sacrebleu.corpus_bleu(WRITTEN, [TARGETS]).score)
    assert found["chrf"] == pytest.approx(sacrebleu.corpus_chrf(WRITTEN, [TARGETS]).score)
    assert metrics.compute(("bleu",), TARGETS, TARGETS, "seq2seq")["bleu"] == pytest.approx(100)
    assert metrics.compute(("bleu",), TARGETS, ["", ""], "seq2seq") == {"bleu": 0.0}
    assert metrics.METRICS["bleu"].highest == 100


def test_summaries_are_rouge_scores_own():
    from rouge_score.rouge_scorer import RougeScorer

    names = ("rouge1", "rouge2", "rougeL", "rougeLsum")
    scorer = RougeScorer(names, use_stemmer=True)
    lines = ["One thing happened.\nThen another did.", "Nothing more was said.\nIt ended."]
    written = ["Then another one did.\nOne thing happened.", "It ended.\nNothing."]
    found = metrics.compute(names, lines, written, "seq2seq")
    for name in names:
        each = [scorer.score(right, got)[name].fmeasure for right, got in zip(lines, written, strict=True)]
        assert found[name] == pytest.approx(np.mean(each))
    assert found["rougeLsum"] > found["rougeL"]  # sentences in another order
    spaces = [text.replace("\n", " ") for text in written]
    assert metrics.compute(names, lines, spaces, "seq2seq") == pytest.approx(found)
    assert metrics.compute(names, lines, ["", ""], "seq2seq") == dict.fromkeys(names, 0.0)


def test_signatures_say_what_was_computed():
    found = metrics.signature(("bleu", "chrf", "rougeLsum", "accuracy"))
    assert set(found) == {"bleu", "chrf", "rougeLsum"}
    assert found["bleu"].startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")


@pytest.mark.parametrize("kind", ["classification", "regression", "span", "seq2seq"])
def test_no_rows_of_any_kind(kind):
    names = [name for name, metric in metrics.METRICS.items() if kind in metric.kinds]
    assert metrics.compute(names, [], [], kind) == dict.fromkeys(names)
    with pytest.raises(ValueError, match="1 references but 0 predictions"):
        metrics.compute(names, [1], [], kind)


def test_a_metric_of_another_kind_is_refused():
    with pytest.raises(ValueError, match="'bleu' is no metric of span tasks .*exact_match"):
        metrics.compute(("bleu",), [["a"]], ["a"], "span")


CODES = {
    "constant prediction": ([0, 1, 1, 2], [1, 1, 1, 1]),
    "constant labels": ([1, 1, 1], [0, 1, 2]),
    "one class, all right": ([1, 1], [1, 1]),
    "another class, all right": ([0, 0], [0, 0]),
    "all wrong": ([0, 1], [1, 0]),
    "a class that no label has": ([0, 1, 0, 1], [0, 2, 2, 1]),
    "one row": ([1], [1]),
}


@pytest.mark.filterwarnings("ignore")  # what the library says of such cases
@pytest.mark.parametrize("case", CODES)
def test_classes_are_scored_as_scikit_learn_scores_them(case):
    import sklearn.metrics as library

    labels, predicted = (np.array(codes) for codes in CODES[case])
    found = metrics.compute(("accuracy", "matthews", "f1", "macro-f1"), labels, predicted)
    assert found["accuracy"] == library.accuracy_score(labels, predicted)
    assert found["matthews"] == pytest.approx(library.matthews_corrcoef(labels, predicted))
    assert found["macro-f1"] == pytest.approx(library.f1_score(labels, predicted, average="macro", zero_division=0))
    if {*labels, *predicted} <= {0, 1}:
        assert found["f1"] == pytest.approx(library.f1_score(labels, predicted, zero_division=0))
    else:  # of the class with code 1, whatever else there is
        assert found["f1"] == pytest.approx(
            library.f1_score(labels, predicted, labels=[1], average="macro", zero_division=0)
        )


NUMBERS = {
    "ties on both sides": ([1.0, 1, 2, 2, 3], [0.0, 5, 5, 5, 7]),
    "ties against the order": ([3.0, 3, 1, 1], [0.0, 0, 2, 2]),
    "two rows": ([0.0, 1], [4.0, 3]),
    "constant prediction": ([1.0, 2, 3], [2.0, 2, 2]),
    "constant labels": ([2.0, 2, 2], [1.0, 2, 3]),
    "both constant": ([2.0, 2], [2.0, 2]),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", NUMBERS)
def test_numbers_are_scored_as_scipy_scores_them_and_undefined_where_it_has_nan(case):
    import scipy.stats as library
    from sklearn.metrics import mean_squared_error

    labels, predicted = (np.array(values) for values in NUMBERS[case])
    found = metrics.compute(("pearson", "spearman", "mse"), labels, predicted, "regression")
    assert found["mse"] == pytest.approx(mean_squared_error(labels, predicted))
    for name, own in (("pearson", library.pearsonr), ("spearman", library.spearmanr)):
        expected = own(labels, predicted).statistic
        assert found[name] is None if np.isnan(expected) else found[name] == pytest.approx(expected)


TEXTS = {
    "empty predictions": (["a cat sat here now", "no"], ["", ""]),
    "empty references": (["", "a cat"], ["something", "a cat"]),
    "the same text throughout": (["a cat sat on a mat", "dogs bark at night"], ["a cat sat on a mat"] * 2),
    "ties of words": (["b b b a", "a a b b"], ["a a a b", "b b a a"]),
    "one short text": (["yes"], ["yes"]),
}


@pytest.mark.parametrize("case", TEXTS)
def test_texts_are_scored_as_sacrebleu_and_rouge_score_score_them(case):
    import sacrebleu
    from rouge_score.rouge_scorer import RougeScorer

    references, written = TEXTS[case]
    names = ("bleu", "chrf", "rouge1", "rouge2", "rougeL", "rougeLsum")
    found = metrics.compute(names, references, written, "seq2seq")
    assert found["bleu"] == pytest.approx(sacrebleu.corpus_bleu(written, [references]).score)
    assert found["chrf"] == pytest.approx(sacrebleu.corpus_chrf(written, [references]).score)
    scorer = RougeScorer(names[2:], use_stemmer=True)
    for name in names[2:]:
        each = [scorer.score(right, got)[name].fmeasure for right, got in zip(references, written, strict=True)]
        assert found[name] == pytest.approx(np.mean(each))
