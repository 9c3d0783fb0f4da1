"""Questions about a short text, with the answer as a stretch of it, by phenomenon.

The text tells several events in which the same people do the same things to each other, so that the sentence most like
the question is often not the one that answers it; active and passive, in the text and in the question, make the roles
decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from factory.grammar import NP, Clause, Sampler, by_name, render, say
from factory.lexicon import Verb, words

GIVING = words("give hand send mail lend loan sell bring pass show offer throw toss")


@dataclass(frozen=True)
class Episode:
    """The sentences of the text, the question and the answer's words, which stand in the sentence of that number."""

    sentences: list[list[str]]
    question: list[str]
    answer: list[str]
    number: int


Builder = Callable[[Sampler], Episode]
Event = tuple[Clause, list[str]]  # and the words that tell it


def cast(s: Sampler, count: int) -> list[NP]:
    """Different persons, definite or by name."""

    def person() -> NP:
        name = s.chance(0.2)
        return NP(s.name(), det="") if name else s.np("person", False, 0.25, det=s.choose(("the", "the", "the", "my")))

    return s.several(person, count)


def _verbs(s: Sampler, kind: str, count: int) -> list[Verb]:
    chosen: list[Verb] = []
    while len(chosen) < count:
        verb = s.verb(s.verbs_for("person", kind))
        if all(verb.lemma not in other.group and other.lemma not in verb.group for other in chosen):
            chosen.append(verb)
    return chosen


def _things(s: Sampler, kind: str, count: int) -> list[NP]:
    def thing() -> NP:
        np = s.np(kind, s.chance(0.25), 0.3, det=s.choose(("the", "the", "a", "my")))
        return replace(np, det="the") if np.plural and np.det == "a" else np

    return s.several(thing, count)


def _plain(np: NP) -> NP:
    """As the question mentions it."""
    return replace(np, det="the" if np.det == "a" else np.det, adjectives=())


def _tell(s: Sampler, clause: Clause) -> Event:
    return clause, clause.passive() if s.chance(0.4) else clause.active()


def _mixed(s: Sampler, events: Sequence[Event]) -> list[Event]:
    order = list(events)
    s.rng.shuffle(order)
    return order


def _asked(s: Sampler, events: list[Event], clause: Clause, question: list[str], answer: list[str]) -> Episode:
    order = _mixed(s, events)
    number = next(n for n, (candidate, _) in enumerate(order) if candidate is clause)
    return Episode([words for _, words in order], question, answer, number)


def _doings(s: Sampler) -> list[Event]:
    """A does it to B, B to C, D does it to somebody else; something else is done to B as well."""
    a, b, c, d = cast(s, 4)
    verb, other = _verbs(s, "person", 2)
    pairs = [(verb, a, b), (verb, b, c), (other, d, b), (verb if s.chance(0.5) else other, c, d)]
    return [_tell(s, Clause(v, x, y, tense="past")) for v, x, y in pairs]


def who_did_it(s: Sampler) -> Episode:
    """Who thanked the boy? Who was the boy thanked by?"""
    events = _doings(s)
    clause = events[int(s.chance(0.5))][0]
    target, verb = _plain(clause.patient), clause.verb
    passive = s.chance(0.5)
    question = say("who was {} {} by ?", target, verb.participle) if passive else say("who {} {} ?", verb.past, target)
    return _asked(s, events, clause, question, clause.subject.words)


def to_whom(s: Sampler) -> Episode:
    """Who did the doctor thank? Who was thanked by the doctor?"""
    events = _doings(s)
    clause = events[int(s.chance(0.5))][0]
    return _asked(s, events, clause, _of_object(s, "who", clause, 0.5), clause.patient.words)


def _of_object(s: Sampler, wh: str, clause: Clause, passive: float) -> list[str]:
    """What or whom did the doctor thank? What or who was thanked by the doctor?"""
    asking, verb = _plain(clause.subject), clause.verb
    if s.chance(passive):
        return say("{} was {} by {} ?", wh, verb.participle, asking)
    return say("{} did {} {} ?", wh, asking, verb.lemma)


def denied(s: Sampler) -> Episode:
    """One of them did not do it."""
    a, b, c, d = cast(s, 4)
    verb, other = _verbs(s, "person", 2)
    did = Clause(verb, a, b, tense="past")
    events = [
        _tell(s, did),
        _tell(s, Clause(verb, c, b, tense="past", negated=True)),
        _tell(s, Clause(verb, a, d, tense="past", negated=True)),
        _tell(s, Clause(other, d, c, tense="past")),
    ]
    if s.chance(0.5):
        return _asked(s, events, did, ["who", verb.past, *_plain(b).words, "?"], a.words)
    return _asked(s, events, did, ["who", "did", *_plain(a).words, verb.lemma, "?"], b.words)


def _errands(s: Sampler) -> list[Event]:
    """Two people do things to things in places, or do not: the first two events are asked about."""
    a, b = cast(s, 2)
    kind = s.choose(("object", "object", "clothing", "food", "vehicle"))
    verb, other = _verbs(s, kind, 2)
    x, y = _things(s, kind, 2)
    pairings = [(verb, a, x, False), (verb, b, y, False), (verb, a, y, True), (verb, b, x, True)]
    pairings[2 + int(s.chance(0.5))] = (other, *s.choose(((a, y), (b, x))), False)
    where = [(s.choose(("in", "near", "behind", "outside")), *np.words) for np in _things(s, "place", 4)]
    return [
        _tell(s, Clause(v, who, what, tense="past", place=tuple(there), negated=no))
        for (v, who, what, no), there in zip(pairings, where, strict=True)
    ]


def what(s: Sampler) -> Episode:
    """What did the doctor buy? What was bought by the doctor?"""
    events = _errands(s)
    clause = events[int(s.chance(0.5))][0]
    return _asked(s, events, clause, _of_object(s, "what", clause, 0.4), clause.patient.words)


def where(s: Sampler) -> Episode:
    """Where did the doctor buy the car?"""
    events = _errands(s)
    clause = events[int(s.chance(0.5))][0]
    asking, thing, verb = _plain(clause.subject).words, _plain(clause.patient), clause.verb
    was = "were" if thing.plural else "was"
    active = say("where did {} {} {} ?", asking, verb.lemma, thing)
    passive = say("where {} {} {} ?", was, thing, verb.participle)
    question = s.choose((active, passive))
    return _asked(s, events, clause, question, list(clause.place))


def giver_and_recipient(s: Sampler) -> Episode:
    """A thing is given on and on: who gave it, and to whom?"""
    a, b, c, d = cast(s, 4)
    x, y = _things(s, s.choose(("object", "text", "clothing")), 2)
    verb = s.choose([v for v in s.lexicon.dative if v.lemma in GIVING and s.allowed(v)])
    gifts = [(a, b, x), (b, c, x), (c, d, x if s.chance(0.5) else y), (d, a, y)]
    events: list[Event] = []
    for giver, goal, gift in gifts:
        clause = Clause(verb, giver, gift, goal, tense="past")
        events.append((clause, clause.passive() if s.chance(0.35) else clause.active(s.choose(("double", "to")))))
    clause = events[int(s.chance(0.5))][0]
    assert clause.recipient is not None
    source, target, thing = _plain(clause.subject).words, _plain(clause.recipient).words, _plain(clause.patient).words
    if s.chance(0.5):
        return _asked(s, events, clause, ["who", "did", *source, verb.lemma, *thing, "to", "?"], clause.recipient.words)
    return _asked(s, events, clause, ["who", verb.past, *thing, "to", *target, "?"], clause.subject.words)


def row(episode: Episode) -> dict[str, object]:
    """The columns of a row; the answer starts where it stands in the text."""
    rendered = [render(words) for words in episode.sentences]
    start = sum(len(sentence) + 1 for sentence in rendered[: episode.number])
    sentence, answer = rendered[episode.number], " ".join(episode.answer)
    inside = f" {sentence.lower()}".find(f" {answer.lower()}")
    context = " ".join(rendered)
    start += inside
    return {
        "question": render(episode.question),
        "context": context,
        "answers": {"text": [context[start : start + len(answer)]], "answer_start": [start]},
    }


PHENOMENA = by_name(who_did_it, to_whom, denied, what, where, giver_and_recipient)
