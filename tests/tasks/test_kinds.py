"""Every task of the papers from small files in the forms that people have, each kind, and their faults."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from isoviz import tasks
from isoviz.errors import DataError, InputError
from isoviz.tasks import outcomes, report

CONTEXT = "The Amazon crosses nine nations. Brazil holds 60 % of the forest."
ANSWERS = [
    {"text": ["nine", "nine nations"], "answer_start": [19, 19]},
    {"text": ["Brazil"], "answer_start": [33]},
    {"text": ["60 %"], "answer_start": [46]},
]


def rows_of(task, n=6):
    """Rows in the columns of the data set's own files."""
    if task.kind == "span":
        some = [
            {"id": f"q{i}", "question": f"which {i} ?", "context": CONTEXT, "answers": ANSWERS[i % 3]} for i in range(n)
        ]
        return [{**row, "title": "Amazon"} for row in some]
    if task.directions:
        first, second = task.directions[0].split("-")
        return [{"translation": {first: f"{first} text {i}.", second: f"{second} text {i}."}} for i in range(n)]
    if task.kind == "seq2seq":
        return [
            {"article": f"Article {i}. It is long. It has an end. Really.", "highlights": f"Sum {i}."} for i in range(n)
        ]
    labels = len(task.label_names)
    texts = [{column: f"{column} {i}" for column in task.columns} for i in range(n)]
    return [{**text, "label": i % labels if labels else i / 2, "idx": i} for i, text in enumerate(texts)]


def write(folder, suffix, **splits):
    folder.mkdir(exist_ok=True, parents=True)
    for split, rows in splits.items():
        path = folder / f"{split}{suffix}"
        if suffix == ".parquet":
            pd.DataFrame(rows).to_parquet(path)
        elif suffix == ".jsonl":
            path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        else:
            flat = [{k: json.dumps(v) if isinstance(v, dict) else v for k, v in row.items()} for row in rows]
            pd.DataFrame(flat).to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    return folder


PAPER_TASKS = [slug for slug, task in tasks.catalogue().items() if not task.generated]


def test_the_papers_tasks_all_exist():
    assert tasks.get(next(iter(tasks.catalogue()))).generated  # what a form offers first needs no files
    glue = {f"glue/{name}" for name in ("cola", "sst2", "mrpc", "qqp", "stsb", "mnli", "qnli", "rte", "wnli")}
    assert set(PAPER_TASKS) >= glue | {"sst5", "squad", "wmt16/ro-en", "wmt16/de-en", "cnn_dailymail"}
    for slug in PAPER_TASKS:
        task = tasks.get(slug)
        assert task.hub and task.source and task.licence and task.description


SHAPES = {
    (task.kind, len(task.columns), len(task.label_names) > 2, task.places, task.validation): task.slug
    for task in map(tasks.get, PAPER_TASKS)
}
"""One task of each form of rows."""


@pytest.mark.parametrize("slug", SHAPES.values())
def test_all_forms_of_file_give_the_same_rows(tmp_path, slug):
    task = tasks.get(slug)
    tables = []
    for suffix in (".parquet", ".jsonl", ".csv", ".tsv"):
        folder = write(tmp_path / suffix, suffix, train=rows_of(task, 8), **{task.validation: rows_of(task, 6)})
        tables.append(tasks.load(task, folder))
    assert len({data.fingerprint for data in tables}) == 1
    train = tables[0].train
    assert list(train.columns[: len(task.columns)]) == list(task.columns)
    assert len(train) == 8 and len(tables[0].validation) == 6
    assert all(isinstance(text, str) for column in task.columns for text in train[column])
    if task.kind == "classification":
        assert train["label"].dtype == np.int64
        assert train["label"].tolist() == [row["label"] for row in rows_of(task, 8)]
    elif task.kind == "regression":
        assert train["label"].dtype == np.float64
        assert train["label"].tolist() == [i / 2 for i in range(8)]
    elif task.kind == "span":
        assert train["id"].tolist() == [f"q{i}" for i in range(8)]
        for texts, starts in zip(train["answer_texts"], train["answer_starts"], strict=True):
            assert [CONTEXT[at : at + len(text)] for text, at in zip(texts, starts, strict=True)] == texts
            assert type(texts) is type(starts) is list and type(starts[0]) is int
    report = tasks.check_data(task, tmp_path / ".parquet")
    assert report.rows["train"] == 8
    simple = outcomes.guess(task, train, tables[0].validation)
    assert set(simple) == set(task.metrics)
    assert list(outcomes.reference_values(task, simple)) == [task.simple_guess]
    table = outcomes.errors(task, train, (train["label"] if "label" in train else pd.Series(["x"] * 8)).tolist())
    assert sorted(table["row"]) == list(range(1, 9))


def test_simple_baselines_match_their_definitions(tmp_path):
    def guess(slug, **changes):
        task = tasks.get(slug)
        data = tasks.load(task, write(tmp_path / slug, ".jsonl", train=rows_of(task, 9), validation=rows_of(task)))
        return outcomes.guess(task, data.train, data.validation)

    assert guess("glue/stsb")["pearson"] is None
    assert guess("glue/stsb")["mse"] == pytest.approx(np.mean((np.arange(6) / 2 - 2) ** 2))
    assert guess("squad")["exact_match"] == 0
    words = len(["amazon", "crosses", "nine", "nations", "brazil", "holds", "60", "of", "forest"])
    best = [2 * 2 / (2 + words), 2 / (1 + words), 2 / (1 + words)]  # "60 %" is one word after normalisation
    assert guess("squad")["f1"] == pytest.approx(np.mean(best))
    assert 0 < guess("wmt16/ro-en")["bleu"] < 100
    assert 0 < guess("cnn_dailymail")["rouge1"] < 1


def test_translations_go_either_way(tmp_path):
    task = tasks.get("wmt16/ro-en")
    folder = write(tmp_path, ".parquet", train=rows_of(task), validation=rows_of(task))
    forwards, back = (tasks.load(task, folder, direction) for direction in task.directions)
    assert tasks.load(task, folder).fingerprint == forwards.fingerprint != back.fingerprint
    assert forwards.train["source"].tolist() == back.train["target"].tolist()
    assert back.train["source"].tolist() == [f"en text {i}." for i in range(6)]
    with pytest.raises(InputError, match=r"direction: .* has no direction 'en-fr' \(allowed: \w\w-en, en-\w\w\)"):
        tasks.load(task, folder, "en-fr")
    with pytest.raises(InputError, match="does not translate"):
        tasks.load(tasks.get("glue/cola"), folder, "en-ro")


def test_mismatched_validation_is_kept_apart(tmp_path):
    task = tasks.get("glue/mnli")
    splits = {
        "train": rows_of(task, 9),
        "validation_matched": rows_of(task, 6),
        "validation_mismatched": rows_of(task, 3),
    }
    data = tasks.load(task, write(tmp_path, ".parquet", **splits))
    assert len(data.validation) == 6
    assert list(data.extra) == ["mismatched"]
    assert len(data.extra["mismatched"]) == 3
    assert tasks.check_data(task, tmp_path).rows == {"train": 9, "validation": 6, "mismatched": 3}
    (tmp_path / "validation_mismatched.parquet").unlink()
    assert not tasks.load(task, tmp_path).extra


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"text": ["nine"], "answer_start": [18]}, "is not in the context at its stated position; got 'nine'"),
        ({"text": [], "answer_start": []}, "no answer in 'answers' in 1 row (3)"),
        ({"text": ["nine"]}, "no answer"),
        ("not there", "is not in the context at its stated position; got 'not there'"),
    ],
)
def test_bad_answers_are_named(tmp_path, answers, message):
    task = tasks.get("squad")
    rows = rows_of(task)
    rows[2]["answers"] = answers
    with pytest.raises(DataError) as caught:
        tasks.load(task, write(tmp_path, ".jsonl", train=rows, validation=rows_of(task)))
    assert message in str(caught.value)
    assert "(3)" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("slug", "change", "message"),
    [
        ("glue/stsb", {"label": "high"}, "'label' must be a number; got 'high' in 1 row (2)"),
        ("glue/stsb", {"label": None}, "empty 'label' in 1 row (2)"),
        ("glue/stsb", {"label": -1.0}, "hidden label of a test split"),
        ("glue/mnli", {"label": 3}, "0 = entailment, 1 = neutral, 2 = contradiction"),
        ("wmt16/ro-en", {"translation": {"ro": "a", "de": "b"}}, "empty 'translation.en' in 1 row (2)"),
        ("cnn_dailymail", {"article": ["a", "b"]}, "'article' must be text; got ['a', 'b'] in 1 row (2)"),
    ],
)
def test_bad_rows_are_named(tmp_path, slug, change, message):
    task = tasks.get(slug)
    rows = rows_of(task)
    rows[1] |= change
    with pytest.raises(DataError) as caught:
        tasks.load(task, write(tmp_path, ".jsonl", train=rows, **{task.validation: rows_of(task)}))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


# ---- after a run ---------------------------------------------------------------------------------------------


def test_errors_of_classes_are_the_surest_wrong_ones_first():
    task = tasks.get("glue/cola")
    rows = pd.DataFrame({"sentence": list("abcd"), "label": [0, 1, 1, 0]})
    table = outcomes.errors(task, rows, [0, 0, 1, 1], confidence=np.array([0.9, 0.6, 0.7, 0.8]))
    assert table["row"].tolist() == [4, 2, 3, 1]
    assert table.iloc[0].to_dict() == {
        "row": 4, "sentence": "d", "label": "unacceptable", "prediction": "acceptable", "correct": False, "confidence": 0.8,
    }  # fmt: skip
    with pytest.raises(ValueError, match="4 rows but 1 predictions"):
        outcomes.errors(task, rows, [0])


@pytest.mark.parametrize(
    ("slug", "references", "predictions", "reason"),
    [
        ("glue/cola", [0, 1, 1], [1, 1, 1], "predicts one class"),
        ("glue/cola", [0, 1, 1], [1, 0, 1], None),
        ("glue/cola", [1, 1, 1], [0, 0, 0], None),  # one class to predict: a constant is no fault of the model
        ("glue/stsb", [0.0, 5.0, 2.5], [2.5, 2.5, 2.5], "predicts one number"),
        ("glue/stsb", [0.0, 5.0, 2.5], [2.499, 2.5, 2.501], "predicts one number"),  # a spread of bf16's rounding
        ("glue/stsb", [0.0, 5.0, 2.5], [2.4, 2.5, 2.6], None),
        ("squad", [["a"], ["b", "c"]], ["", " "], "answers nothing"),
        ("squad", [["a"], ["b", "c"]], ["d", "d"], "gives every question the same answer"),
        ("squad", [["a"], ["b", "c"]], ["d", ""], None),
        ("wmt16/de-en", ["Hello.", "Good evening."], ["", ""], "writes nothing"),
        ("wmt16/de-en", ["Hello.", "Good evening."], ["the the", "the the "], "writes the same text for every row"),
        ("wmt16/de-en", ["Hello.", "Good evening."], ["Hello.", "Hello!"], None),
    ],
)
def test_collapse_is_seen_in_the_predictions_of_every_kind(slug, references, predictions, reason):
    task = tasks.get(slug)
    assert outcomes.collapse(task, pd.DataFrame({task.reference: references}), predictions) == reason


def test_notes_on_scores_compare_the_splits():
    train = pd.DataFrame({"label": [0, 1], "premise": ["a", "b"], "hypothesis": ["c", "d"]})
    rows = pd.DataFrame({"label": [1, 2, 0], "premise": ["b", "x", "a"], "hypothesis": ["d", "y", "z"]})
    splits = {"train": train, "validation": rows}
    _, same, unseen = report.score_notes(tasks.get("glue/mnli"), splits)
    assert same.startswith("1 validation rows")
    assert "'contradiction' is in validation but not in train" in unseen
