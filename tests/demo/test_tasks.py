from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache

import pytest

from isoviz.demo import tasks
from isoviz.demo.baselines import bag_of_words, baselines, majority, mean
from isoviz.demo.corpus import excluded_sentences, texts

SLUGS = tasks.SLUGS
DIGEST = """
import hashlib, json
from isoviz.demo import tasks
print(hashlib.sha256(json.dumps([tasks.generate(s) for s in tasks.SLUGS]).encode()).hexdigest())
"""


@cache
def rows(slug: str) -> dict[str, list[tasks.Row]]:
    return tasks.generate(slug)


def words(slug: str, row: tasks.Row) -> list[str]:
    return [word for column in tasks.describe(slug).columns[:-1] for word in re.findall(r"[a-z]+", row[column].lower())]


def test_generation_does_not_depend_on_the_process() -> None:
    here = hashlib.sha256(json.dumps([tasks.generate(slug) for slug in SLUGS]).encode()).hexdigest()
    run = subprocess.run(
        [sys.executable, "-c", DIGEST],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == here


@pytest.mark.parametrize("slug", SLUGS)
def test_sizes_balance_and_columns(slug: str) -> None:
    described = tasks.describe(slug)
    assert 1000 <= len(rows(slug)["train"]) <= 4000
    assert len(rows(slug)["validation"]) == 500
    for split in rows(slug).values():
        counts = Counter(row["label"] for row in split)
        assert counts[0] == counts[1]
        assert all(set(row) == {*described.columns, "phenomenon"} for row in split)
        assert all(row[column] and row[column][-1] in ".?!" for row in split for column in described.columns[:-1])


@pytest.mark.parametrize("slug", SLUGS)
def test_every_phenomenon_has_both_labels_in_both_splits(slug: str) -> None:
    for split in rows(slug).values():
        found = Counter((row["phenomenon"], row["label"]) for row in split)
        assert set(found) == {(name, label) for name in tasks.describe(slug).phenomena for label in (0, 1)}
        assert min(found.values()) >= 10


@pytest.mark.parametrize("slug", SLUGS)
def test_no_sentence_of_validation_is_in_train(slug: str) -> None:
    columns = tasks.describe(slug).columns[:-1]
    sentences = {name: [row[column] for row in split for column in columns] for name, split in rows(slug).items()}
    assert not set(sentences["train"]) & set(sentences["validation"])
    assert len(set(sentences["train"])) == len(sentences["train"])


@pytest.mark.parametrize("slug", SLUGS)
def test_validation_has_words_that_train_never_shows(slug: str) -> None:
    known = {word for row in rows(slug)["train"] for word in words(slug, row)}
    unseen = sum(any(word not in known for word in words(slug, row)) for row in rows(slug)["validation"])
    assert 0.3 <= unseen / 500 <= 0.8


@pytest.mark.parametrize("slug", SLUGS)
def test_a_bag_of_words_does_not_solve_it_and_the_record_is_right(slug: str) -> None:
    recorded = baselines(slug)
    score, _ = bag_of_words(slug)
    assert score <= 0.75
    assert recorded["bag_of_words"] == pytest.approx(score, abs=0.01)
    assert recorded["majority"] == majority(slug) == 0.5


@pytest.mark.parametrize("slug", SLUGS)
def test_recorded_pretrained_weights_are_clearly_above_all_baselines(slug: str) -> None:
    recorded = baselines(slug)
    pretrained, fresh = recorded["pretrained"], recorded["random_weights"]
    assert set(pretrained["seeds"]) == set(fresh["seeds"]) == {"0", "1", "2"}
    assert mean(pretrained) == pytest.approx(sum(pretrained["seeds"].values()) / 3, abs=1e-3)
    assert min(pretrained["seeds"].values()) > max(*fresh["seeds"].values(), recorded["bag_of_words"]) + 0.1
    assert max(pretrained["seconds"], fresh["seconds"]) < 30


def test_unknown_task_is_named() -> None:
    with pytest.raises(ValueError, match="demo/acceptability"):
        tasks.describe("demo/nothing")


def test_pretraining_text_is_deterministic_and_avoids_validation_sentences() -> None:
    first, again = list(texts(3000, seed=3)), list(texts(3000, seed=3))
    assert first == again
    assert excluded_sentences().isdisjoint(sentence for _, text in first for sentence in text)
    assert {len(text) for _, text in first} == {1, 2}
