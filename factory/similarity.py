"""Pairs of sentences with the degree to which they say the same, 0 to 5, by phenomenon.

A sentence says who does what to whom or what, how that one is described, and where. Each of these counts if both
sentences agree on it, said in the same word or a synonym; exchanged roles, a denial and the same word in another place
do not. The score is the sum of what agrees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain, combinations

from factory import paraphrase
from factory.grammar import NP, Clause, Sampler

Scored = tuple[list[str], list[str], float]
Builder = Callable[[Sampler, int], Scored]
WEIGHTS = {"subject": 1.0, "verb": 1.5, "object": 1.0, "description": 0.75, "place": 0.75}
BINS = 6  # the scores nearest to 0, 1, ... 5 come equally often
DESCRIPTIONS = {  # classes of adjectives that also go with places and people, where possible
    "person": ("person",), "animal": ("size",), "food": ("size",), "object": ("size", "colour"),
    "clothing": ("size", "colour"), "vehicle": ("size", "colour"),
}  # fmt: skip
DETERMINERS = ("the", "the", "my", "our")


def subsets(number: int) -> list[frozenset[str]]:
    """What may agree for a score that rounds to the number (halves up)."""
    everything = chain.from_iterable(combinations(WEIGHTS, size) for size in range(len(WEIGHTS) + 1))
    return [frozenset(agree) for agree in everything if int(sum(WEIGHTS[a] for a in agree) + 0.5) == number]


@dataclass(frozen=True)
class Scene:
    clause: Clause
    description: str  # an adjective on the object
    where: NP
    elsewhere: str = ""  # an adjective on the noun of the place, which does not count

    def words(self, s: Sampler) -> list[str]:
        obj = replace(self.clause.patient, adjectives=(self.description,))
        obj = obj if self.description else replace(obj, adjectives=())
        where = replace(self.where, adjectives=(self.elsewhere,) if self.elsewhere else ())
        clause = replace(self.clause, object=obj, place=("near", *where.words))
        return clause.passive() if s.chance(0.5) else clause.active()


def _np(s: Sampler, kind: str, *others: NP) -> NP:
    return s.unlike(lambda: s.np(kind, s.chance(0.3), 0.0, det=s.choose(DETERMINERS), name=0.0), *others)


def _other(s: Sampler, np: NP, *others: NP) -> NP:
    """Another noun of the class, none of the others."""
    return s.unlike(lambda: replace(np, noun=paraphrase.other_noun(s, np.noun)), *others)


def synonymous(s: Sampler, np: NP) -> NP:
    return (paraphrase.same_noun(s, np) or np) if s.chance(0.85) else np


def scene(s: Sampler, kind: str) -> Scene:
    subject = _np(s, "person")
    obj = _np(s, kind, subject)
    where = _np(s, s.choose(("place", "person")), subject, obj)
    verb = s.verb(s.verbs_for("person", kind))
    return Scene(Clause(verb, subject, obj, tense="past", negated=s.chance(0.3)), _adjective(s, kind), where)


def _adjective(s: Sampler, kind: str) -> str:
    return s.word(s.lexicon.adjectives[s.choose(DESCRIPTIONS[kind])]).lemma


def second_scene(s: Sampler, first: Scene, agree: frozenset[str]) -> Scene:
    """A scene that agrees with the first one in just these respects; what does not agree is often only elsewhere."""
    clause, kind, where = first.clause, _kind(first), first.where
    old, thing = clause.subject, clause.object
    assert thing is not None
    everyone = (old, thing, where)
    subject = synonymous(s, old) if "subject" in agree else _other(s, old, *everyone)
    obj = synonymous(s, thing) if "object" in agree else _other(s, thing, *everyone, subject)
    there = synonymous(s, where) if "place" in agree else _other(s, where, *everyone, subject, obj)
    if kind == "person" and agree.isdisjoint(("subject", "object")) and s.chance(0.6):
        subject, obj = thing, old
    elif where.noun.kind == "person" and agree.isdisjoint(("subject", "place")) and s.chance(0.7):
        subject, there = where, old
    elif kind == "person" == where.noun.kind and agree.isdisjoint(("object", "place")) and s.chance(0.7):
        obj, there = where, thing
    verb, negated = clause.verb, clause.negated
    if "verb" in agree:
        verb = (paraphrase.same_verb(s, verb, s.verbs_for("person", kind)) or verb) if s.chance(0.8) else verb
    elif s.chance(0.5):
        negated = not negated
    else:
        verb, negated = paraphrase.other_verb(s, clause), s.chance(0.3)
    described = _described(s, first, kind, agree)
    fits = there.noun.kind == ("person" if kind == "person" else "place")
    if fits and "description" not in agree and s.chance(0.7):  # the same adjective, but on another noun
        return Scene(
            Clause(verb, subject, obj, tense="past", negated=negated),
            described if s.chance(0.5) else "",
            there,
            first.description,
        )
    return Scene(Clause(verb, subject, obj, tense="past", negated=negated), described, there)


def _described(s: Sampler, first: Scene, kind: str, agree: frozenset[str]) -> str:
    words = [a for group in s.lexicon.adjectives.values() for a in group]
    groups = {adjective.lemma: adjective.group for adjective in words}
    group = groups[first.description]
    if "description" in agree:
        return s.choose([lemma for lemma in group if lemma == first.description or s.allowed(lemma)])
    other = _adjective(s, kind)
    while other in group:
        other = _adjective(s, kind)
    return other


def _kind(scene: Scene) -> str:
    return scene.clause.patient.noun.kind


def _builder(kinds: tuple[str, ...]) -> Builder:
    def build(s: Sampler, number: int) -> Scored:
        agree = s.choose(subsets(number))
        first = scene(s, s.choose(kinds))
        second = second_scene(s, first, agree)
        score = sum(WEIGHTS[facet] for facet in agree)
        a, b = first.words(s), second.words(s)
        while a == b:  # where nothing has a synonym and the voice is the same
            b = second.words(s)
        return (a, b, score) if s.chance(0.5) else (b, a, score)

    return build


KINDS = {"people": ("person",), "things": ("object", "clothing", "vehicle", "food"), "animals": ("animal",)}
PHENOMENA: dict[str, Builder] = {name: _builder(kinds) for name, kinds in KINDS.items()}
