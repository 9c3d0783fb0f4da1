"""Simple learners that count words, for the tasks that are not a class or a number: what a network should surpass."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import Any

Row = dict[str, Any]
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
