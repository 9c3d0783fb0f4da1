"""Scores of approaches without a network on the demo tasks: majority, bag of words, copying, word-by-word translation.

Where the answer is no class or number, the bag of words is a simple learner of its own: `read`, `nearest`, `substituted`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from factory.tasks import Row, generate
from isoviz import tasks
from isoviz.tasks import metrics
from isoviz.training.heads import ranking

READ_ROWS = 800  # training rows the reader learns from
LONGEST_ANSWER = 7
ROUNDS = 6


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]+|[.?]", text.lower())


def nearest(train: list[Row], validation: list[Row]) -> list[str]:
    """The target of the training row whose source has the most similar bag of words (TF-IDF, cosine)."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(token_pattern=r"[a-zA-Z]+")
    known = vectorizer.fit_transform([row["source"] for row in train])
    closest = (vectorizer.transform([row["source"] for row in validation]) @ known.T).toarray().argmax(1)
    return [train[index]["target"] for index in closest]


def substituted(train: list[Row], validation: list[Row]) -> list[str]:
    """Each word replaced by its likeliest partner, in the order of the source; words without a partner are left out.

    The partners are those of IBM's first model (Brown et al., 1993, section 4.1): expectation maximisation over all
    alignments, with an empty word on the source side.
    """
    pairs = [(["", *words(row["source"])], words(row["target"])) for row in train]
    chance: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(lambda: 1.0))
    for _ in range(ROUNDS):
        counts: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for source, target in pairs:
            for said in target:
                total = sum(chance[word][said] for word in source)
                for word in source:
                    counts[word][said] += chance[word][said] / total
        chance = defaultdict(lambda: defaultdict(lambda: 1e-9))
        for word, partners in counts.items():
            whole = sum(partners.values())
            chance[word] = defaultdict(lambda: 1e-9, {said: count / whole for said, count in partners.items()})
    best = {word: max(known, key=lambda said: (known[said], said)) for word, known in chance.items() if known}
    return [" ".join(best[word] for word in words(row["source"]) if word in best) for row in validation]


def _tokens(context: str) -> list[tuple[str, int, int]]:
    """(word, where it starts, where it ends)."""
    return [(m[0].lower(), m.start(), m.end()) for m in re.finditer(r"[A-Za-z]+|[.?]", context)]


def _token_features(row: Row) -> list[dict[str, float]]:
    tokens = _tokens(row["context"])
    asked = words(row["question"])
    bag = Counter(asked)
    sentences: list[list[str]] = [[]]
    number = []
    for word, _, _ in tokens:
        number.append(len(sentences) - 1)
        sentences[-1].append(word)
        if word == ".":
            sentences.append([])
    overlap = [sum((Counter(sentence) & bag).values()) for sentence in sentences]
    text = ["", *(word for word, _, _ in tokens), ""]
    return [
        {
            f"word {text[i + 1]}": 1.0,
            f"before {text[i]}": 1.0,
            f"after {text[i + 2]}": 1.0,
            f"{asked[0]} {text[i + 1]}": 1.0,
            f"{asked[0]} {asked[1]} before {text[i]}": 1.0,
            "in question": float(text[i + 1] in bag),
            "next in question": float(text[i + 2] in bag),
            "sentence overlap": float(overlap[number[i]]),
            "best sentence": float(overlap[number[i]] == max(overlap)),
            f"sentence {number[i]}": 1.0,
        }
        for i in range(len(tokens))
    ]


def read(train: list[Row], validation: list[Row]) -> list[str]:
    """Answers by two logistic regressions, of a word being the first or the last one of the answer."""
    import numpy as np
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression

    rows = train[:READ_ROWS]
    features, first, last = [], [], []
    for row in rows:
        start = row["answers"]["answer_start"][0]
        end = start + len(row["answers"]["text"][0])
        features += _token_features(row)
        first += [begin == start for _, begin, _ in _tokens(row["context"])]
        last += [stop == end for _, _, stop in _tokens(row["context"])]
    vectorizer = DictVectorizer()
    known = vectorizer.fit_transform(features)
    opening, closing = (LogisticRegression(max_iter=1000).fit(known, marks) for marks in (first, last))
    texts = [_tokens(row["context"]) for row in validation]
    inside = vectorizer.transform([token for row in validation for token in _token_features(row)])
    ends_of_rows = np.cumsum([len(tokens) for tokens in texts])[:-1]
    chances = (np.split(model.predict_log_proba(inside)[:, 1], ends_of_rows) for model in (opening, closing))
    answers = []
    for row, tokens, starts, ends in zip(validation, texts, *chances, strict=True):
        sums = starts[:, None] + ends[None, :]
        distance = np.arange(len(starts))[None, :] - np.arange(len(starts))[:, None]
        sums[(distance < 0) | (distance >= LONGEST_ANSWER)] = -np.inf
        i, j = np.unravel_index(sums.argmax(), sums.shape)
        answers.append(row["context"][tokens[i][1] : tokens[j][2]])
    return answers


# ------------------------------------------------------------------------------------------ scores


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
    (seq2seq), the order of TF-IDF's cosines (embedding). The regularisation of the regressions is the best of four on the
    validation rows themselves, so the figure flatters the bag of words if anything.
    """
    kind = tasks.get(slug).kind
    splits = generate(slug)
    if kind == "embedding":
        return _found(slug, splits)
    if kind == "span":
        tries = [read(splits["train"], splits["validation"])]
    elif kind == "seq2seq":
        tries = [nearest(splits["train"], splits["validation"])]
    else:
        tries = _regressions(slug, splits)
    scored = [(score(slug, splits["validation"], guesses), guesses) for guesses in tries]
    value, guesses = max(scored, key=lambda pair: -1.0 if pair[0] is None else pair[0])
    assert value is not None
    return value, by_phenomenon(slug, splits["validation"], guesses)


def _found(slug: str, splits: dict[str, list[Row]]) -> tuple[float, dict[str, float | None]]:
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer

    columns = tasks.get(slug).columns
    weights = TfidfVectorizer(token_pattern=r"[a-zA-Z]+").fit(row[name] for row in splits["train"] for name in columns)

    def ndcg(rows: list[Row]) -> float:
        texts = [row[name] for row in rows for name in columns]
        codes = np.unique(texts, return_inverse=True)[1].reshape(-1, len(columns))
        value = ranking(weights.transform(texts).toarray(), codes)[1]["ndcg"]
        assert value is not None
        return value

    rows = splits["validation"]
    kinds = sorted({row["phenomenon"] for row in rows})
    return ndcg(rows), {kind: round(ndcg([r for r in rows if r["phenomenon"] == kind]), 3) for kind in kinds}


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
    return score(slug, splits["validation"], substituted(splits["train"], splits["validation"]))
