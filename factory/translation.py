"""English sentences with their Velic translation, by phenomenon. The words are those of the core lexicon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from factory import velic
from factory.grammar import NP, Clause, Sampler, be, by_name
from factory.lexicon import Word

Pair = tuple[list[str], list[str]]
Builder = Callable[[Sampler], Pair]
SINGULAR = ("the", "the", "the", "a", "a", "this", "that", "my", "our", "every")
PLURAL = ("the", "the", "the", "some", "these", "those", "my", "our", "two", "three", "many")
TENSES = ("past", "past", "past", "present", "future", "perfect", "modal")
THINGS = ("object", "object", "object", "food", "vehicle", "person", "person", "animal", "place")


def _np(s: Sampler, kind: str, adjective: float = 0.3, plural: bool | None = None, name: float = 0.15) -> NP:
    if kind == "person" and not plural and s.chance(name):
        return NP(s.name(), det="")
    many = s.chance(0.4) if plural is None else plural
    return s.np(kind, many, adjective, det=s.choose(PLURAL if many else SINGULAR))


def _place(s: Sampler) -> tuple[list[str], list[str]]:
    """The place in both languages."""
    preposition = s.choose(("in", "in", *velic.AFTER_NOUN))
    np = _np(s, "place", 0.1)
    return [preposition, *np.words], velic.place(preposition, np)


def _when(s: Sampler, tense: str) -> tuple[str, list[str]]:
    kind = {"past": "past", "future": "future", "present": "present"}.get(tense)
    if kind is None or not s.chance(0.5):
        return "", []
    word = s.word(s.lexicon.adverbs[kind])
    return word.lemma, [velic.stem("adverb", word)]


def _clause(s: Sampler, tense: str | None = None, things: tuple[str, ...] = THINGS, adjective: float = 0.3) -> Clause:
    """Somebody does something; subject and object are not the same word."""
    kind = s.choose(things)
    subject = _np(s, "person", adjective)
    obj = s.unlike(lambda: _np(s, kind, adjective), subject)
    verb = s.verb(s.verbs_for("person", kind))
    return Clause(verb, subject, obj, tense=tense or s.choose(TENSES), modal=s.choose(tuple(velic.MODALS)))


def statement(s: Sampler) -> Pair:
    """The time and the manner stand elsewhere in Velic."""
    clause = _clause(s)
    time, when = _when(s, clause.tense)
    manner: Word | None = s.word(s.lexicon.adverbs["manner"]) if s.chance(0.3) else None
    english = replace(clause, time=time, manner=manner.lemma if manner else "")
    how = [velic.stem("adverb", manner)] if manner else []
    return english.active(front=s.chance(0.5)), velic.statement(clause, [], when, how)


def place(s: Sampler) -> Pair:
    where, there = _place(s)
    if s.chance(0.5):
        clause = _clause(s, adjective=0.15)
    else:
        kind = s.choose(("person", "person", "animal"))
        verb = s.verb(s.lexicon.intransitive[kind])
        tense = s.choose(TENSES)
        clause = Clause(verb, _np(s, kind), tense=tense, modal=s.choose(tuple(velic.MODALS)))
    return replace(clause, place=tuple(where)).active(), velic.statement(clause, there, [], [])


def passive(s: Sampler) -> Pair:
    clause = _clause(s, s.choose(("past", "past", "future", "perfect", "present")))
    agent = s.chance(0.75)
    return clause.passive(by=agent), velic.object_first(clause, [], [], agent)


def negation(s: Sampler) -> Pair:
    clause = replace(_clause(s), negated=True)
    clause = replace(clause, tense=s.choose(("past", "past", "present", "future", "perfect", "modal")))
    if s.chance(0.25) and clause.tense != "modal":
        return clause.passive(), velic.object_first(clause, [], [])
    return clause.active(), velic.statement(clause, [], [], [])


def dative(s: Sampler) -> Pair:
    """Both English frames have one translation."""
    verb = s.verb(s.lexicon.dative)
    giver, goal = s.several(lambda: _np(s, "person", 0.15), 2)
    thing = _np(s, s.choose(("object", "object", "food")))
    clause = Clause(verb, giver, thing, goal, tense=s.choose(("past", "past", "future", "perfect")))
    if s.chance(0.25):
        return clause.passive(), velic.object_first(clause, [], [])
    return clause.active(s.choose(("double", "to"))), velic.statement(clause, [], [], [])


def question(s: Sampler) -> Pair:
    clause = _clause(s, s.choose(("past", "past", "present", "future", "perfect")))
    draw = s.rng.random()
    if draw < 0.45:
        return clause.polar(), velic.polar(clause, [])
    if draw < 0.75:
        return clause.ask_object(), velic.ask(clause, "object")
    return clause.ask_subject(), velic.ask(clause, "subject")


def relative_clause(s: Sampler) -> Pair:
    """The doctor who helped the boys slept: in Velic what is said of a noun comes before it."""
    head = _np(s, "person", 0.15, name=0)
    inner = replace(_clause(s, "past", adjective=0.1), subject=head)
    while inner.object is not None and inner.object.noun.group[0] == head.noun.group[0]:
        inner = replace(inner, object=_np(s, "person", 0.1))
    tail = ("who", *inner.predicate())
    tense = s.choose(("past", "present", "future"))
    if s.chance(0.6):
        outer = Clause(s.verb(s.lexicon.intransitive["person"]), replace(head, tail=tail), tense=tense)
        said = velic.verb(outer)
        return outer.active(), [*velic.phrase(head, "", velic.participle(inner)), *said]
    other = _np(s, "person", 0.1)
    outer = Clause(s.verb(s.verbs_for("person", "person")), other, replace(head, tail=tail), tense=tense)
    subject, heads = velic.phrase(other), velic.phrase(head, "object", velic.participle(inner))
    return outer.active(), [*subject, *heads, *velic.verb(outer)]


def coordination(s: Sampler) -> Pair:
    """Two subjects make a plural verb; "and" stands after the second one."""
    first, second = s.several(lambda: _np(s, "person", 0.15, plural=False), 2)
    joined = replace(second, plural=True)  # as subject of the English verb
    clause = _clause(s, s.choose(("past", "present", "perfect")), ("object", "food", "animal", "vehicle", "place"))
    plural = replace(clause, subject=replace(joined, det="the"))
    english = [*first.words, "and", *second.words, *plural.predicate()]
    said = [*velic.phrase(first), *velic.phrase(second), velic.AND, *velic.phrase(clause.patient, "object")]
    return english, [*said, *velic.verb(clause, plural=True)]


def adjective_as_predicate(s: Sampler) -> Pair:
    """Velic has no "be": the adjective itself takes the endings of a verb."""
    kind = s.choose(("person", "person", "object", "animal", "place", "food"))
    subject = _np(s, kind, 0.15)
    lemma = s.adjective(kind).lemma
    while lemma in subject.adjectives:
        lemma = s.adjective(kind).lemma
    tense, negated = s.choose(("past", "present")), s.chance(0.35)
    english = [*subject.words, be(tense, subject.plural), *(["not"] if negated else []), lemma]
    return english, [*velic.phrase(subject), velic.adjective_form(lemma, subject, negated, tense == "past")]


PHENOMENA = by_name(
    statement, place, passive, negation, dative, question, relative_clause, coordination, adjective_as_predicate
)
