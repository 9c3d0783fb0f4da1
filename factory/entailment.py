"""Premise and hypothesis: does the second follow, is it open, or is it excluded? By phenomenon.

The hypothesis is drawn before the label is looked at and the premise made for it, so that the hypothesis alone says
nothing. Every phenomenon has hypotheses with and without a negation for all three labels where its meaning has one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from factory import paraphrase
from factory.grammar import NP, Clause, Sampler, by_name, say
from factory.lexicon import words

Pair = tuple[list[str], list[str]]
LABELS = ("entailment", "neutral", "contradiction")
ENTAILMENT, NEUTRAL, CONTRADICTION = range(3)
DETERMINERS = ("the", "the", "the", "my", "our")
THINGS = ("object", "object", "vehicle", "text", "place", "work", "clothing", "food")
DONE = words("managed|did not fail|remembered|did not forget|did not refuse", "|")
UNDONE = words("failed|did not manage|forgot|did not remember|refused", "|")
UNKNOWN = words("wanted|hoped|planned|promised|did not want|did not plan|did not promise", "|")
KNOWN = words("knew|realised|remembered|noticed|discovered|did not know|did not notice", "|")
THOUGHT = words("thought|believed|claimed|hoped|suspected|said|did not think|did not say|did not claim", "|")
TENSES = ("past", "past", "past", "present", "future", "perfect")


def _person(s: Sampler, *others: NP, adjective: float = 0.15) -> NP:
    """A definite person, none of the others."""

    def person() -> NP:
        return NP(s.name(), det="") if s.chance(0.15) else s.np("person", False, adjective, det=s.choose(DETERMINERS))

    return s.unlike(person, *others)


def _act(s: Sampler, subject: NP, tense: str | None = None, kind: str | None = None, det: str = "the") -> Clause:
    """The person does something to a thing."""
    kind = kind or s.choose(THINGS)
    tense = tense or s.choose(TENSES)
    verb = s.verb(s.verbs_for("person", kind))
    return Clause(verb, subject, s.np(kind, False, 0.15, det=det), tense=s.tense_for(verb, tense))


def _said(s: Sampler, clause: Clause, passive: float = 0.4) -> list[str]:
    return clause.passive() if s.chance(passive) else clause.active()


def _negated(clause: Clause, negated: bool) -> Clause:
    return replace(clause, negated=negated)


def _claimed(s: Sampler, clause: Clause, passive: float = 0.4, rate: float = 0.5) -> list[str]:
    """The clause itself, or that it is (not) false or (not) true: the number of negations decides, not that there is one."""
    if not s.chance(rate):
        return _said(s, clause, passive)
    inner_negated = s.chance(0.4)
    upright = inner_negated == clause.negated
    above = s.choose(("it is true", "it is not false") if upright else ("it is false", "it is not true"))
    return [*above.split(), "that", *_said(s, _negated(clause, inner_negated), passive)]


def voice(s: Sampler, label: int) -> Pair:
    """The same, the same denied, or with exchanged roles."""
    first = _person(s)
    second = _person(s, first)
    verb = s.verb(s.verbs_for("person", "person"))
    clause = Clause(verb, first, second, tense=s.tense_for(verb, s.choose(TENSES)), negated=s.chance(0.5))
    hypothesis = _claimed(s, clause, 0.5)
    if label == NEUTRAL:
        clause = replace(clause, subject=second, object=first, negated=s.chance(0.5))
    premise = _negated(clause, clause.negated == (label == ENTAILMENT))
    said = _claimed(s, premise, 0.5)
    while said == hypothesis:
        said = _claimed(s, premise, 0.5)
    return said, hypothesis


def quantifier(s: Sampler, label: int) -> Pair:
    """every, some, no, not every."""
    table = {  # hypothesis: the premises for each label
        "every": {ENTAILMENT: ("each",), NEUTRAL: ("some",), CONTRADICTION: ("no", "not every")},
        "some": {ENTAILMENT: ("every", "many"), NEUTRAL: ("not every",), CONTRADICTION: ("no",)},
        "no": {ENTAILMENT: ("not a single",), NEUTRAL: ("not every",), CONTRADICTION: ("some", "every")},
        "not every": {ENTAILMENT: ("no",), NEUTRAL: ("some",), CONTRADICTION: ("every", "each")},
    }
    noun = s.noun("person")
    if s.chance(0.5):
        verb = s.verb(s.lexicon.intransitive["person"])
        clause = Clause(verb, NP(noun), tense="past", place=tuple(s.pp(("place",))) if s.chance(0.3) else ())
    else:
        clause = _act(s, NP(noun), "past")
    hypothesis = s.choose(tuple(table))
    premise = s.choose(table[hypothesis][label])

    def sentence(quantity: str) -> list[str]:
        head = noun.plural if quantity in ("some", "many") else noun.lemma
        return [*quantity.split(), head, *clause.predicate()]

    return sentence(premise), sentence(hypothesis)


def _voices(clause: Clause) -> list[list[str]]:
    """In both voices; or that the opposite is false."""
    opposite = _negated(clause, not clause.negated)
    return [
        clause.active(),
        clause.passive(),
        *(say("it is false that {}", said) for said in (opposite.active(), opposite.passive())),
    ]


def _any(clause: Clause) -> list[list[str]]:
    """What is said with "a" is denied with "any" or "no"."""
    if not clause.negated:
        return [clause.active(), clause.passive()]
    denied = replace(clause, object=replace(clause.patient, det="any"))
    return [denied.active(), replace(clause, negated=False, object=replace(clause.patient, det="no")).active()]


def _specific(
    s: Sampler, label: int, general: Clause, special: Clause, other: NP, forms: Callable[[Clause], list[list[str]]]
) -> Pair:
    """What holds of the special holds of the general; what is denied of the general is denied of the special."""
    negated, detailed = s.chance(0.5), s.chance(0.5)
    hypothesis = _negated(special if detailed else general, negated)
    if label == CONTRADICTION:
        premise = _negated(general if hypothesis.negated is False else special, not negated)
    elif detailed != negated:  # the stronger statement: only itself says so, the weaker one leaves it open
        premise = hypothesis if label == ENTAILMENT else _negated(general if detailed else special, negated)
    else:  # the weaker statement: the stronger one says so; of somebody else it says nothing
        stronger = _negated(general if detailed else special, negated)
        premise = stronger if label == ENTAILMENT else replace(stronger, subject=other)
    second = s.choose(forms(hypothesis))
    return s.choose([form for form in forms(premise) if form != second]), second


def modifier(s: Sampler, label: int) -> Pair:
    """A red car is a car."""
    who = _person(s)
    clause = _act(s, who, "past", s.choose(("object", "clothing", "vehicle")), det="a")
    plain = replace(clause.patient, adjectives=())
    dressed = replace(plain, adjectives=(s.adjective(plain.noun.kind).lemma,))
    return _specific(s, label, replace(clause, object=plain), replace(clause, object=dressed), _person(s, who), _any)


def place(s: Sampler, label: int) -> Pair:
    """What happens in the park happens."""
    who = _person(s)
    clause = _act(s, who, "past", s.choose(("object", "clothing", "food", "vehicle")))
    special = replace(
        clause, place=(s.choose(("in", "near", "behind", "outside")), *s.np("place", False, 0.1, det="the").words)
    )
    return _specific(s, label, clause, special, _person(s, who), _voices)


def coordination(s: Sampler, label: int) -> Pair:
    """Both, one of the two, or neither."""
    first = _person(s)
    second = _person(s, first)
    who = s.choose((first, second))
    alone = Clause(s.verb(s.lexicon.intransitive["person"]), who, tense="past")
    clause = alone if s.chance(0.5) else _act(s, who, "past")
    negated = s.chance(0.5)
    pair = (("both", "and"), ("neither", "nor"))
    opening, joint = ("either", "or") if label == NEUTRAL else pair[negated == (label == ENTAILMENT)]
    premise = [opening, *first.words, joint, *second.words, *clause.predicate()]
    return premise, _claimed(s, _negated(clause, negated), 0.0, 0.35)


def comparative(s: Sampler, label: int) -> Pair:
    """Taller is the other way round shorter; of a third one it says nothing."""
    low, high = s.choose(s.lexicon.opposites["person"])
    if s.chance(0.5):
        low, high = high, low
    a = _person(s, adjective=0)
    b = _person(s, a, adjective=0)
    third = _person(s, a, b, adjective=0)

    def forms(x: NP, y: NP) -> list[list[str]]:
        """That x is `low` of the two."""
        return [
            paraphrase.than(x, low, y, "past"),
            paraphrase.than(y, high, x, "past"),
            paraphrase.not_as(y, low, x, "past"),
        ]

    hypothesis = s.choose(forms(a, b))
    if label == ENTAILMENT:
        return s.choose([form for form in forms(a, b) if form != hypothesis]), hypothesis
    if label == CONTRADICTION:
        return s.choose(forms(b, a)), hypothesis
    x, y = s.choose(((a, third), (third, b), (third, a), (b, third)))
    unlike = paraphrase.than(x, high, y, "past"), paraphrase.not_as(x, low, y, "past")
    return s.choose((paraphrase.than(x, low, y, "past"), *unlike)), hypothesis


def temporal_order(s: Sampler, label: int) -> Pair:
    """Before and after; with another event instead it stays open."""
    first = _person(s)
    second = _person(s, first)
    third = _person(s, first, second)
    a, b, c = (
        Clause(s.verb(s.lexicon.intransitive["person"]), np, tense="past").active()
        if s.chance(0.6)
        else _act(s, np, "past").active()
        for np in (first, second, third)
    )

    def order(x: list[str], y: list[str]) -> list[list[str]]:
        return [[*x, "before", *y], [*y, "after", *x], ["before", *y, ",", *x], ["after", *x, ",", *y]]

    hypothesis = s.choose(order(a, b))
    if label == ENTAILMENT:
        return s.choose([form for form in order(a, b) if form != hypothesis]), hypothesis
    if label == CONTRADICTION:
        return s.choose(order(b, a)), hypothesis
    return s.choose(order(*s.choose(((a, c), (c, b), (b, c), (c, a))))), hypothesis


def implicative_verb(s: Sampler, label: int) -> Pair:
    """Managing is doing, failing is not doing, wanting leaves it open."""
    who = _person(s)
    clause = _act(s, who, "past")
    while clause.verb.lemma in s.lexicon.stative:
        clause = _act(s, who, "past")
    negated = s.chance(0.5)
    above = s.choose(UNKNOWN if label == NEUTRAL else UNDONE if negated == (label == ENTAILMENT) else DONE)
    premise = say("{} {} to {} {}", who, above, clause.verb.lemma, clause.patient)
    return premise, _claimed(s, _negated(clause, negated), 0.3, 0.3)


def factive_verb(s: Sampler, label: int) -> Pair:
    """What one knows is so, what one thinks may be."""
    who = _person(s)
    clause = _act(s, _person(s, who), "past")
    negated = s.chance(0.5)
    if label == NEUTRAL:
        above, inner = s.choose(THOUGHT), s.chance(0.5)
    else:
        above, inner = s.choose(KNOWN), negated == (label == ENTAILMENT)
    premise = say("{} {} that {}", who, above, _negated(clause, inner).active())
    return premise, _claimed(s, _negated(clause, negated), 0.3)


PHENOMENA = by_name(
    voice, quantifier, modifier, place, coordination, comparative, temporal_order, implicative_verb, factive_verb
)
