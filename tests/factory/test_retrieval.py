"""The demo of a search: its relevance is what the sentences say, and the rows that ship are those that the grammar makes."""

from __future__ import annotations

from collections import Counter

from factory import retrieval, rows
from factory.retrieval import Facets, grade

THANK = frozenset({"thank"})
SCENE = Facets("doctor", THANK, False, "boy", "tall", "park")


def test_grades_follow_from_what_agrees() -> None:
    assert grade(SCENE, SCENE) == 3
    assert grade(SCENE, Facets("doctor", THANK, False, "boy", "small", "park")) == 2
    assert grade(SCENE, Facets("nurse", THANK, False, "boy", "tall", "park")) == 1
    assert grade(SCENE, Facets("doctor", frozenset({"thank", "praise"}), False, "boy", "tall", "park")) == 3
    assert grade(SCENE, Facets("nurse", THANK, False, "girl", "tall", "park")) == 0
    assert grade(SCENE, Facets("boy", THANK, False, "doctor", "tall", "park")) == 0  # exchanged roles
    assert grade(SCENE, Facets("doctor", THANK, True, "boy", "tall", "park")) == 0  # a denial


def test_the_factory_makes_the_rows_that_ship() -> None:
    made = retrieval.generate()
    assert rows.shipped(retrieval.SLUG) == made
    texts = [row["text"] for split in ("queries", "documents") for row in made[split]]
    assert len(set(texts)) == len(texts)
    grades = Counter(row["grade"] for row in made["relevance"])
    assert set(grades) == {1, 2, 3} and min(grades.values()) >= 180
    answered = {row["query"] for row in made["relevance"]}
    assert len(answered) == len(made["queries"]) == retrieval.QUERIES
    unanswering = len(made["documents"]) - len({row["document"] for row in made["relevance"]})
    assert unanswering > 700  # similar words, but not an answer
