"""Scores of approaches without a network on the demo tasks: majority, bag of words, copying, word-by-word translation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from factory import simple
from factory.tasks import Row, generate
from isoviz import tasks
from isoviz.tasks import metrics


def references(slug: str, rows: list[Row]) -> list[Any]:
    """The reference for each row's prediction."""
    kind = tasks.get(slug).kind
    if kind == "span":
        return [row["answers"]["text"] for row in rows]
    return [row["target" if kind == "seq2seq" else "label"] for row in rows]


def score(slug: str, rows: list[Row], predictions: Sequence[Any]) -> float | None:
    """The task's primary metric, computed by the engine; None if undefined."""
    task = tasks.get(slug)
    return metrics.compute([task.primary], references(slug, rows), predictions, task.kind)[task.primary]


def by_phenomenon(slug: str, rows: list[Row], predictions: Sequence[Any]) -> dict[str, float | None]:
    """The `score` of each phenomenon's rows, rounded to three places."""
    groups: dict[str, tuple[list[Row], list[Any]]] = {}
    for row, prediction in zip(rows, predictions, strict=True):
        own, predicted = groups.setdefault(row["phenomenon"], ([], []))
        own.append(row)
        predicted.append(prediction)
    scores = {name: score(slug, *pair) for name, pair in sorted(groups.items())}
    return {name: value if value is None else round(value, 3) for name, value in scores.items()}


def majority(slug: str) -> float | None:
    """Accuracy of always answering the most frequent training label; None for tasks without classes."""
    if tasks.get(slug).kind != "classification":
        return None
    splits = generate(slug)
    label = Counter(row["label"] for row in splits["train"]).most_common(1)[0][0]
    return sum(row["label"] == label for row in splits["validation"]) / len(splits["validation"])


def features(row: Row, columns: tuple[str, ...]) -> dict[str, float]:
    """Word counts of a row; for pairs also the words that only one side has and how much the two overlap."""
    bags = [Counter(re.findall(r"[a-z]+", row[column].lower())) for column in columns]
    counts: dict[str, float] = dict(sum(bags, Counter()))
    if len(bags) == 2:
        first, second = bags
        difference = (first - second) + (second - first)
        counts |= {f"only one has {word}": float(count) for word, count in difference.items()}
        counts["# different words"] = sum(difference.values())
        counts["# overlap"] = sum((first & second).values()) / sum((first | second).values())
        counts["# length difference"] = abs(sum(first.values()) - sum(second.values()))
    return counts


def bag_of_words(slug: str) -> tuple[float, dict[str, float | None]]:
    """Validation score, overall and by phenomenon, of the simplest learner that counts words.

    A logistic regression on `features` (classification), a ridge regression on them (regression), a tagger that sees a word's
    neighbours and its sentence's overlap with the question (span), the answer of the training row with the most similar source
    (seq2seq). The regularisation of the regressions is the best of four on the validation rows themselves, so the figure
    flatters the bag of words if anything.
    """
    kind = tasks.get(slug).kind
    splits = generate(slug)
    if kind == "span":
        tries = [simple.read(splits["train"], splits["validation"])]
    elif kind == "seq2seq":
        tries = [simple.nearest(splits["train"], splits["validation"])]
    else:
        tries = _regressions(slug, splits)
    scored = [(score(slug, splits["validation"], guesses), guesses) for guesses in tries]
    value, guesses = max(scored, key=lambda pair: -1.0 if pair[0] is None else pair[0])
    assert value is not None
    return value, by_phenomenon(slug, splits["validation"], guesses)


def _regressions(slug: str, splits: dict[str, list[Row]]) -> list[list[Any]]:
    """Predictions for the validation rows, one list per strength of regularisation."""
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression, Ridge

    columns = tasks.get(slug).columns
    vectorizer = DictVectorizer()
    train = vectorizer.fit_transform([features(row, columns) for row in splits["train"]])
    check = vectorizer.transform([features(row, columns) for row in splits["validation"]])
    labels = [row["label"] for row in splits["train"]]
    if tasks.get(slug).kind == "regression":
        return [Ridge(alpha).fit(train, labels).predict(check).tolist() for alpha in (1.0, 10.0, 100.0, 1000.0)]
    return [
        LogisticRegression(C=strength, max_iter=3000).fit(train, labels).predict(check).tolist()
        for strength in (0.01, 0.1, 1.0, 10.0)
    ]


def copied(slug: str) -> float | None:
    """The score of the source itself as target; None for tasks of another kind."""
    rows = generate(slug)["validation"]
    return score(slug, rows, [row["source"] for row in rows]) if tasks.get(slug).kind == "seq2seq" else None


def word_by_word(slug: str) -> float | None:
    """The score of each word replaced by its likeliest translation, for the translation task; None for others."""
    if slug != "demo/translation":
        return None
    splits = generate(slug)
    return score(slug, splits["validation"], simple.substituted(splits["train"], splits["validation"]))
