"""The pretraining text: single sentences and two-sentence texts, all grammatical, without any label.

A text is a tuple of one or two sentences. Two-sentence texts are what follows naturally: questions with their answer,
something said again in other words, an opinion with what came of it, a second opinion in the same spirit, an event and the
next one.
Sentences of the tasks' validation rows are left out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from factory import acceptability, paraphrase, sentiment
from factory.grammar import NP, Clause, Sampler, be, render, say
from factory.lexicon import article, words
from factory.tasks import generate
from isoviz import tasks

Words = list[str]
GRAMMATICAL = (  # some phenomena come more often than others
    *acceptability.PHENOMENA,
    "agreement",
    *("agreement across a phrase", "agreement across a relative clause", "tense and time") * 2,
)
GOOD_OUTCOMES = words(
    "we told all our friends to go|everybody clapped|the audience cheered|i am going again next week|"
    "we came back twice|i would recommend it to anyone|it won a prize|people queued for hours|"
    "we stayed until the end|i am very glad i went|everyone was delighted|it is well worth the money|"
    "i would happily pay for it again|we were all impressed",
    "|",
)
BAD_OUTCOMES = words(
    "we told all our friends to stay away|nobody clapped|the audience booed|i am never going again|we left early|"
    "i would not recommend it to anyone|it won no prize|people asked for their money back|"
    "we did not stay until the end|i am sorry i went|everyone was disappointed|it is a waste of money|"
    "i will never pay for it again|nobody was impressed",
    "|",
)
RESTATEMENTS = ("in other words ,", "that is ,", "to put it differently ,", "to be clear ,", "in short ,")


def _statement(s: Sampler) -> Words:
    """A clause of any kind in one of its declarative forms."""
    draw = s.rng.random()
    if draw < 0.3:
        return s.intransitive().active()
    if draw < 0.6:
        clause = replace(s.transitive(), negated=s.chance(0.12))
        return clause.active(front=s.chance(0.5))
    if draw < 0.75:
        clause = s.transitive()
        return clause.passive(by=s.chance(0.7), front=s.chance(0.5))
    if draw < 0.9:
        alternating = s.chance(0.6)
        return s.ditransitive(alternating).active(s.choose(("double", "to")) if alternating else "to")
    return _copula(s)


def _copula(s: Sampler) -> Words:
    kind = s.choose(("person", "object", "place", "abstract", "food", "animal", "vehicle"))
    subject = s.np(kind, name=0)
    front = [s.word(s.lexicon.adverbs["intensifier"]).lemma] if s.chance(0.3) else []
    second = ["and", s.adjective(kind).lemma] if s.chance(0.2) else []
    return [*subject.words, be(s.choose(("present", "past")), subject.plural), *front, s.adjective(kind).lemma, *second]


def _embedded(s: Sampler) -> Words:
    verb = s.verb(s.lexicon.clausal)
    subject = s.np("person", adjective=0.1)
    return [*subject.words, verb.past, *(["that"] if s.chance(0.8) else []), *_statement(s)]


def _complex(s: Sampler) -> Words:
    link = s.choose(("because", "when", "while", "after", "before", "although", "since", "until"))
    first, second = _statement(s), _statement(s)
    draw = s.rng.random()
    if draw < 0.35:
        return [*first, link, *second]
    if draw < 0.7:
        return [link, *first, ",", *second]
    return [*first, ",", s.choose(("and", "but", "so")), *second]


def _question(s: Sampler) -> Words:
    draw = s.rng.random()
    clause = s.transitive()
    if draw < 0.3:
        return clause.polar(passive=s.chance(0.3))
    if draw < 0.55:
        return clause.ask_object()
    if draw < 0.75:
        return clause.ask_subject()
    wh = s.choose(("why", "when", "where", "how"))
    dropped = {"when": {"time": ""}, "where": {"place": ()}, "how": {"manner": ""}}.get(wh, {})
    return replace(clause, **dropped).ask_adjunct(wh)  # type: ignore[arg-type]


def _acceptable(s: Sampler) -> Words:
    return acceptability.PHENOMENA[s.choose(GRAMMATICAL)](s, True)


def _opinion(s: Sampler) -> Words:
    return s.choose(list(sentiment.PHENOMENA.values()))(s, s.chance(0.5))


def _agreeing(s: Sampler) -> Words:
    """An opinion whose parts go together: dull and tedious, loved because it was witty."""
    positive = s.chance(0.5)
    about = sentiment.target(s)
    kind, noun = about.kind, about.phrase.noun.lemma
    first, second = (sentiment.quality(s, kind, positive) for _ in range(2))
    who = sentiment.audience(s)
    verb = sentiment.past(s.choose(sentiment.POSITIVE_VERBS if positive else sentiment.NEGATIVE_VERBS))
    effect = sentiment.past(s.choose(sentiment.POSITIVE_EFFECTS if positive else sentiment.NEGATIVE_EFFECTS))
    it_was = "they were" if about.phrase.pronoun == "they" else f"{about.phrase.pronoun} was"
    verdict = s.word(s.lexicon.polarity["verdict_positive" if positive else "verdict_negative"]).lemma
    outcome = s.choose(GOOD_OUTCOMES if positive else BAD_OUTCOMES).split()
    target, was = about.phrase, about.was()
    intensified = sentiment.strong(s, kind, positive), sentiment.strong(s, kind, positive)
    person = s.np("person", det="the")
    reason = s.choose(GOOD_OUTCOMES if positive else BAD_OUTCOMES)
    return s.choose(
        (
            say("{} {} {} and {}", target, was, first, second),
            say("{} {} {} , {}", target, was, *intensified),
            say("it was {} {} , {} {}", article(first), first, second, noun),
            say("{} {} the {} {}", who, verb, first, noun),
            say("the {} {} {} {}", first, noun, effect, person),
            say("{} {} {} because {} {}", who, verb, target, it_was, first),
            say("{} {} so {} that {}", target, was, first, outcome),
            say("{} {} {} {} {}", target, was, article(first), first, verdict),
            say("{} because it was {}", reason, first),
            say("the {} {} was {} {}", first, noun, article(verdict), verdict),
        )
    )


def _answered(s: Sampler) -> tuple[Words, Words]:
    """A question and its answer."""
    draw = s.rng.random()
    clause = s.transitive("person", plain=True)
    if draw < 0.4:
        answer = replace(clause, negated=s.chance(0.5))
        question, said = clause.polar(s.chance(0.3)), answer.active() if s.chance(0.6) else answer.passive()
        return question, say("{} , {}", "no" if answer.negated else "yes", said)
    if draw < 0.7:
        return clause.ask_object(), clause.active() if s.chance(0.5) else clause.passive()
    singular = replace(
        clause, subject=replace(clause.subject, plural=False, det="" if clause.subject.noun.kind == "name" else "the")
    )
    return singular.ask_subject(), singular.active() if s.chance(0.5) else singular.passive()


def _restated(s: Sampler) -> tuple[Words, Words]:
    """Something said again in other words."""
    first, second = s.choose(list(paraphrase.PHENOMENA.values()))(s, True)
    return first, [*s.choose(RESTATEMENTS).split(), *second]


def _outcome(s: Sampler) -> tuple[Words, Words]:
    """An opinion and what came of it."""
    positive = s.chance(0.5)
    other = s.choose(list(sentiment.PHENOMENA.values()))
    opinion = s.choose((sentiment.plain_opinion, sentiment.plain_opinion, sentiment.opinion_verb, other))(s, positive)
    return opinion, [*(["so"] if s.chance(0.3) else []), *s.choose(GOOD_OUTCOMES if positive else BAD_OUTCOMES).split()]


def _same_spirit(s: Sampler) -> tuple[Words, Words]:
    """A second opinion of the same kind about the same thing."""
    positive = s.chance(0.5)
    about = sentiment.target(s)
    first = [*about.words, about.was(), *sentiment.judgement(s, about.kind, positive, 0.2)]
    subject = about.phrase.pronoun if about.kind != "person" or not s.chance(0.5) else "everyone said they"
    was = "were" if subject.endswith("they") else "was"
    second = [*subject.split(), was, *sentiment.judgement(s, about.kind, positive, 0.2)]
    if s.chance(0.5):
        second += ["and", *sentiment.strong(s, about.kind, positive)]
    return first, second


def _definite(np: NP) -> NP:
    """The same participant when it is mentioned again."""
    return np if np.noun.kind == "name" else replace(np, det="the", adjectives=(), tail=())


def _event(s: Sampler, cast: list[NP], tense: str) -> Words:
    """What some of the cast do, or how they are."""
    people = [np for np in cast if np.noun.kind in ("person", "name")]
    subject = s.choose(people)
    others = [np for np in cast if np is not subject]
    draw = s.rng.random()
    if draw < 0.15:
        return Clause(s.verb(s.lexicon.intransitive["person"]), subject, tense=tense).active()
    if draw < 0.25:
        return [*subject.words, be(tense, subject.plural), s.adjective("person").lemma]
    if draw < 0.4 and len(others) > 1 and people != cast:
        thing = next(np for np in cast if np not in people)
        goal = s.choose([np for np in people if np is not subject])
        return Clause(s.verb(s.lexicon.dative), subject, thing, goal, tense=tense).active(s.choose(("double", "to")))
    obj = s.choose(others)
    kind = "person" if obj.noun.kind == "name" else obj.noun.kind
    clause = Clause(s.verb(s.verbs_for("person", kind)), subject, obj, tense=tense)
    return clause.passive() if s.chance(0.3) else clause.active()


def _cast(s: Sampler) -> list[NP]:
    return [
        s.np("person"),
        s.np("person"),
        s.np(s.choose(("object", "object", "clothing", "food", "text", "vehicle", "animal"))),
    ]


def _story(s: Sampler) -> tuple[Words, Words]:
    """An event and the next one, with the same people and things."""
    cast = _cast(s)
    again = [_definite(np) for np in cast]
    tense = s.choose(("past", "present"))
    opening = s.choose(("then", "later", "after that ,", "soon", "so", "", "", "")).split()
    return _event(s, cast, tense), [*opening, *_event(s, again, tense)]


def _linked_events(s: Sampler) -> Words:
    """Two events with the same people and things in one sentence."""
    cast = _cast(s)
    again = [_definite(np) for np in cast]
    tense = s.choose(("past", "present"))
    link = s.choose(("because", "when", "while", "after", "before", "although", "until"))
    if s.chance(0.5):
        return [*_event(s, cast, tense), link, *_event(s, again, tense)]
    return [link, *_event(s, cast, tense), ",", *_event(s, again, tense)]


Maker = Callable[[Sampler], Words | tuple[Words, Words]]
# kind of text: its share of the corpus in per cent, its maker
MIXTURE: dict[str, tuple[int, Maker]] = {
    "grammatical phenomena": (24, _acceptable),
    "statements": (4, _statement),
    "embedded statements": (2, _embedded),
    "complex sentences": (2, _complex),
    "linked events": (4, _linked_events),
    "questions": (3, _question),
    "opinions": (4, _opinion),
    "opinions that agree in themselves": (10, _agreeing),
    "questions and answers": (9, _answered),
    "restatements": (15, _restated),
    "opinions and outcomes": (8, _outcome),
    "opinions in the same spirit": (5, _same_spirit),
    "stories": (10, _story),
}


def sentences_of_validation(slugs: Iterable[str]) -> set[str]:
    """All texts of the tasks' validation rows."""
    return {row[column] for slug in slugs for row in generate(slug)["validation"] for column in tasks.get(slug).columns}


def excluded_sentences() -> set[str]:
    """What the text leaves out: the validation sentences of the tasks that there were when tiny-bert was pretrained."""
    return sentences_of_validation(("demo/acceptability", "demo/sentiment", "demo/paraphrase"))


def texts(count: int, seed: int = 0) -> Iterator[tuple[str, tuple[str, ...]]]:
    """`count` texts as (kind, sentences), deterministic in the seed."""
    s = Sampler(random.Random(f"corpus {seed}"))
    kinds = list(MIXTURE)
    weights = [MIXTURE[kind][0] for kind in kinds]
    excluded = excluded_sentences()
    made = 0
    while made < count:
        kind = s.rng.choices(kinds, weights)[0]
        built = MIXTURE[kind][1](s)
        sentences = (render(built),) if isinstance(built, list) else tuple(render(words) for words in built)
        if excluded.isdisjoint(sentences):
            made += 1
            yield kind, sentences
