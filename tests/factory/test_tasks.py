from __future__ import annotations

import re
from collections import Counter
from functools import cache

import pytest

from factory import tasks
from factory.baselines import bag_of_words
from factory.rows import shipped
from isoviz.demo import baselines
from isoviz.tasks import get
from tests import nightly

SLUGS = tasks.SLUGS
CLASSES = [slug for slug in SLUGS if get(slug).kind == "classification"]


@cache
def rows(slug: str) -> dict[str, list[tasks.Row]]:
    """Those that ship: `test_shipped` says that they are the generated ones."""
    return shipped(slug)


def words(slug: str, row: tasks.Row) -> list[str]:
    return [word for column in get(slug).columns for word in re.findall(r"[a-z]+", row[column].lower())]


@pytest.mark.parametrize("slug", SLUGS)
def test_sizes_and_columns(slug: str) -> None:
    task, maker = get(slug), tasks.generator(slug)
    assert 1000 <= len(rows(slug)["train"]) == maker.train_rows <= 4000
    assert 500 <= len(rows(slug)["validation"]) == maker.validation_rows <= 1000
    identity = {"id"} if task.kind == "span" else set()
    for split in rows(slug).values():
        assert all(set(row) == {*task.file_columns, *identity, "phenomenon"} for row in split)
        assert all(row[column] and row[column][-1] in ".?!" for row in split for column in task.columns)
        assert {row["phenomenon"] for row in split} == set(maker.phenomena)


@pytest.mark.parametrize("slug", CLASSES)
def test_labels_are_balanced_in_every_split_and_phenomenon(slug: str) -> None:
    codes = range(len(get(slug).label_names))
    for split in rows(slug).values():
        counts = Counter(row["label"] for row in split)
        assert [counts[code] for code in codes] == [len(split) // len(codes)] * len(codes)
        pairs = Counter((row["phenomenon"], row["label"]) for row in split)
        assert set(pairs) == {(name, code) for name in tasks.generator(slug).phenomena for code in codes}
        assert min(pairs.values()) >= 10


@pytest.mark.parametrize("slug", SLUGS)
def test_no_text_of_validation_is_in_train(slug: str) -> None:
    columns = tasks.generator(slug).distinct
    sentences = {name: [row[column] for row in split for column in columns] for name, split in rows(slug).items()}
    assert columns and not set(sentences["train"]) & set(sentences["validation"])
    assert len(set(sentences["train"])) == len(sentences["train"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "slug",
    nightly.cases(
        ["demo/acceptability", "demo/similarity", "demo/qa", "demo/summarization"],
        always=("demo/acceptability", "demo/similarity"),
    ),
)
def test_the_recorded_bag_of_words_is_right(slug: str) -> None:
    """One task for each way of counting words; that the rows are those of the record is tested for all of them."""
    score, by_phenomenon = bag_of_words(slug)
    assert score == pytest.approx(baselines(slug)["bag_of_words"], abs=0.01)
    assert set(by_phenomenon) == set(tasks.generator(slug).phenomena)
