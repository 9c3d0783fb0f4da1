"""What simple approaches reach on the demo tasks, as recorded by `python -m isoviz.demo.record_baselines`.

Majority and bag of words are computed by the functions here; random weights and pretrained weights are runs of the
engine.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from isoviz.demo.tasks import Row, describe, generate

RECORD = Path(__file__).parent / "data" / "baselines.json"


@cache
def _record() -> dict[str, Any]:
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {"tasks": {}}


def baselines(slug: str) -> dict[str, Any]:
    """The recorded accuracies on the validation rows, trained on all training rows.

    Keys: `majority` and `bag_of_words` (floats), `random_weights` and `pretrained` ({"mean", "seeds": {seed: accuracy},
    "by_phenomenon", "seconds"}), `recipe` (the fine-tuning configuration), `bag_of_words_by_phenomenon`.
    Empty before the first recording. ValueError for an unknown slug.
    """
    describe(slug)
    return _record()["tasks"].get(slug, {})


def recorded_pace(slug: str) -> float | None:
    """Seconds per training row and epoch of the recorded pretrained runs, measuring included; None before a recording."""
    found = baselines(slug)
    if not found:
        return None
    return float(found["pretrained"]["seconds"]) / (describe(slug).train_rows * found["recipe"]["epochs"])


def mean(value: Any) -> float:
    """The value itself, or the mean of a record over seeds."""
    return float(value["mean"] if isinstance(value, dict) else value)


def majority(slug: str) -> float:
    """Accuracy of always answering the most frequent training label."""
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


def bag_of_words(slug: str) -> tuple[float, dict[str, float]]:
    """Validation accuracy, in all and by phenomenon, of a logistic regression on `features`.

    Its regularisation is the best of four on the validation rows themselves, so the figure flatters the bag of words
    if anything.
    """
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression

    splits = generate(slug)
    columns = describe(slug).columns[:-1]
    vectorizer = DictVectorizer()
    train = vectorizer.fit_transform([features(row, columns) for row in splits["train"]])
    check = vectorizer.transform([features(row, columns) for row in splits["validation"]])
    labels = [row["label"] for row in splits["train"]]
    best: tuple[float, dict[str, float]] = (0.0, {})
    for strength in (0.01, 0.1, 1.0, 10.0):
        guesses = LogisticRegression(C=strength, max_iter=3000).fit(train, labels).predict(check)
        right = [int(guess == row["label"]) for guess, row in zip(guesses, splits["validation"], strict=True)]
        accuracy = sum(right) / len(right)
        if accuracy > best[0]:
            best = accuracy, by_phenomenon(splits["validation"], right)
    return best


def by_phenomenon(rows: list[Row], right: list[int]) -> dict[str, float]:
    """Share of right answers (1 or 0 each) by phenomenon, rounded to three places."""
    found: dict[str, list[int]] = {}
    for row, value in zip(rows, right, strict=True):
        found.setdefault(row["phenomenon"], []).append(value)
    return {name: round(sum(values) / len(values), 3) for name, values in sorted(found.items())}
