"""The demo of a search: queries, documents, and how well each document answers each query, from the grammar of the similarity task; and
the task demo/search, whose rows are a query, a document that answers it, and one in similar words that does not.

A document says who does what to whom or what, how that one is described, and where; a query says the same in other words.
Relevance is not drawn but read off: 3 where everything agrees, 2 where who, what and to whom agree, 1 where what is done agrees and
one of the two others. So a document that was made for one query counts for
every other that it answers. Exchanged roles, a denial and the same words in another place do not count.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from factory import similarity
from factory.grammar import Sampler, render
from factory.similarity import Scene

SLUG = "demo/retrieval"
QUERIES = 200
AGREEMENTS = (  # of the documents made for a query, with its scene
    ("subject", "verb", "object", "description", "place"),
    ("subject", "verb", "object"),
    ("subject", "verb", "object", "place"),
    ("verb", "object"),
    ("verb", "object", "place"),
    ("subject", "verb", "description"),
    ("subject", "object", "description", "place"),
    ("subject", "object"),
    ("description", "place"),
    ("object", "place"),
)
HARD = AGREEMENTS[4:8]  # of a negative
TRIES = 16  # of which the negative with most of the query's words counts
KINDS = ("person", "object", "clothing", "vehicle", "food", "animal")


@dataclass(frozen=True)
class Facets:
    """What a scene says, each by the first word of its group of synonyms; a verb by all of them, because not all are of one group."""

    subject: str
    verb: frozenset[str]
    negated: bool
    object: str
    description: str
    place: str

    @classmethod
    def of(cls, scene: Scene, groups: dict[str, str]) -> Facets:
        clause = scene.clause
        return cls(
            clause.subject.noun.group[0],
            frozenset(clause.verb.group),
            clause.negated,
            clause.patient.noun.group[0],
            groups.get(scene.description, ""),
            scene.where.noun.group[0],
        )


def grade(query: Facets, document: Facets) -> int:
    """0 to 3: how well the document answers the query."""
    if not query.verb & document.verb or query.negated != document.negated:
        return 0
    people = (query.subject == document.subject) + (query.object == document.object)
    if people < 2:
        return people
    return 3 if (query.description, query.place) == (document.description, document.place) else 2


def _query(s: Sampler, scene: Scene) -> str:
    """The scene in other words, as a statement or a question."""
    thing = scene.clause.object
    assert thing is not None
    clause = replace(
        scene.clause,
        subject=similarity.synonymous(s, scene.clause.subject),
        object=replace(similarity.synonymous(s, thing), adjectives=(scene.description,)),
        place=("near", *similarity.synonymous(s, scene.where).words),
    )
    return render(clause.polar(passive=s.chance(0.3)) if s.chance(0.5) else clause.active())


def _document(s: Sampler, first: Scene, agree: frozenset[str]) -> tuple[str, Scene]:
    """A text that agrees with a scene in just these respects, and what it says."""
    other = similarity.second_scene(s, first, agree)
    return render(other.words(s)), other


def _triplet(kinds: tuple[str, ...]) -> Callable[[Sampler, int], tuple[str, str, str]]:
    """The document shares few words with its query, the negative many."""

    def build(s: Sampler, _: int) -> tuple[str, str, str]:
        first = similarity.scene(s, s.choose(kinds))
        query = _query(s, first)
        asked = set(query.lower().rstrip(".?").split())

        def shared(text: str) -> int:
            return len(asked & set(text.lower().rstrip(".").split()))

        documents, negatives = (
            [text for text in (_document(s, first, frozenset(agree))[0] for agree in chosen) if text != query]
            for chosen in ([AGREEMENTS[0]] * TRIES, [s.choose(HARD) for _ in range(TRIES)])
        )
        return query, min(documents, key=shared), max(negatives, key=shared)

    return build


PHENOMENA = {name: _triplet(kinds) for name, kinds in similarity.KINDS.items()}


def generate() -> dict[str, list[dict[str, Any]]]:
    """`queries` (`id`, `text`), `documents` (also `topic`) and `relevance` (`query`, `document`, `grade`), the same everywhere.

    The topic is the kind of thing or being that something is done to.
    """
    s = Sampler(random.Random(SLUG), quantifiers=False)
    groups = {a.lemma: a.group[0] for adjectives in s.lexicon.adjectives.values() for a in adjectives}
    queries, documents = [], []
    taken: set[str] = set()
    for number in range(QUERIES):
        first = similarity.scene(s, KINDS[number % len(KINDS)])
        text = _query(s, first)
        taken.add(text)
        queries.append((text, Facets.of(first, groups)))
        for agree in AGREEMENTS:
            text, other = _document(s, first, frozenset(agree))
            while text in taken:  # the same sentence again
                text, other = _document(s, first, frozenset(agree))
            taken.add(text)
            documents.append((text, Facets.of(other, groups), other.clause.patient.noun.kind))
    s.rng.shuffle(documents)
    relevance = [
        {"query": f"q{q}", "document": f"d{d}", "grade": found}
        for q, (_, asked) in enumerate(queries)
        for d, (_, said, _) in enumerate(documents)
        if (found := grade(asked, said))
    ]
    return {
        "queries": [{"id": f"q{number}", "text": text} for number, (text, _) in enumerate(queries)],
        "documents": [
            {"id": f"d{number}", "text": text, "topic": topic} for number, (text, _, topic) in enumerate(documents)
        ],
        "relevance": relevance,
    }
