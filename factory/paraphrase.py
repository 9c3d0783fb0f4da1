"""Pairs of sentences that say the same, or something else in almost the same words, by phenomenon.

Within a phenomenon both labels use the same devices (voice, dative, order, synonyms), so that the bag of words of a
pair says little: a passive with exchanged roles has the words of a true paraphrase.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from factory.grammar import NP, Clause, Sampler, be, by_name, say
from factory.lexicon import Adjective, Noun, Verb, Word

Pair = tuple[list[str], list[str]]


def _either(s: Sampler, first: list[str], second: list[str]) -> Pair:
    return (first, second) if s.chance(0.5) else (second, first)


def _people(s: Sampler, tense: str | None = None, plain: bool = True) -> Clause:
    """A person does something to another person."""
    verb = s.verb(s.verbs_for("person", "person"))
    first, second = s.several(lambda: s.np("person"), 2)
    tense, time = s.tense_and_time(
        tense or s.choose(("past", "past", "present", "present", "future", "perfect", "modal"))
    )
    clause = Clause(verb, first, second, tense=tense, time=time, modal=s.choose(("can", "must", "should", "may")))
    return replace(clause, time="") if plain else s.adjuncts(clause)


def _swapped(clause: Clause) -> Clause:
    return replace(clause, subject=clause.patient, object=clause.subject)


def _thing(s: Sampler, tense: str | None = None) -> Clause:
    return s.transitive("person", tense or s.choose(("past", "present", "present", "future", "perfect")), plain=True)


def other_noun(s: Sampler, noun: Noun) -> Noun:
    """A noun of the same class that means something else."""
    items: Sequence[Noun] = s.lexicon.names if noun.kind == "name" else s.lexicon.nouns[noun.kind]
    choice = s.word(items)
    while choice.lemma in noun.group or (
        isinstance(choice, Noun) and noun.gender != choice.gender and noun.kind == "name"
    ):
        choice = s.word(items)
    assert isinstance(choice, Noun)
    return choice


def other_verb(s: Sampler, clause: Clause) -> Verb:
    """A verb that fits the same subject and object and means something else."""
    kinds = [("person" if np.noun.kind == "name" else np.noun.kind) for np in (clause.subject, clause.patient)]
    verbs = s.verbs_for(kinds[0], kinds[1])
    choice = s.verb(verbs)
    while choice.lemma in clause.verb.group or clause.verb.lemma in choice.group:
        choice = s.verb(verbs)
    return choice


def same_verb(s: Sampler, verb: Verb, verbs: Sequence[Verb]) -> Verb | None:
    lemma = s.synonym(verb)
    return next((v for v in verbs if v.lemma == lemma), None)


def same_noun(s: Sampler, np: NP) -> NP | None:
    lemma = s.synonym(np.noun)
    noun = next((n for n in s.lexicon.nouns.get(np.noun.kind, []) if n.lemma == lemma), None)
    return replace(np, noun=noun) if noun else None


def voice(s: Sampler, same: bool) -> Pair:
    """The doctor thanked the boy; the boy was thanked by the doctor (or: the doctor was thanked by the boy)."""
    clause = _people(s)
    return _either(s, clause.active(), (clause if same else _swapped(clause)).passive())


def role_swap(s: Sampler, same: bool) -> Pair:
    """Who does it to whom, in the same construction or in clefts and questions about the roles."""
    clause = _people(s, s.choose(("past", "present", "future")))
    second = clause if same else _swapped(clause)
    forms = (second.cleft("subject"), second.cleft("object"), _the_one(second))
    first = clause.active() if s.chance(0.7) else clause.passive()
    return _either(s, first, s.choose(forms))


def _the_one(clause: Clause) -> list[str]:
    """The one who thanked the boy was the doctor."""
    plural = clause.subject.plural
    one = "ones" if plural else "one"
    return say("the {} who {} {} {}", one, clause.predicate(), be("past", plural), clause.subject)


def dative(s: Sampler, same: bool) -> Pair:
    """Give the boy the book; give the book to the boy."""
    clause = s.ditransitive(True, s.choose(("past", "past", "future", "perfect")))
    assert clause.recipient is not None
    goal = clause.recipient
    while goal.noun.lemma in clause.subject.noun.group:
        goal = s.np("person")
    clause = replace(clause, recipient=goal)
    other = clause if same else replace(clause, subject=goal, recipient=clause.subject)
    second = other.active("to") if s.chance(0.6) else other.passive()
    return _either(s, clause.active("double"), second)


def converse_verbs(s: Sampler, same: bool) -> Pair:
    """Buy from, sell to."""
    get, give = s.choose(s.lexicon.converse)
    kind = s.choose(("object", "text", "clothing", "vehicle"))
    taker, giver, thing = s.np("person", plural=s.chance(0.3)), s.np("person", plural=s.chance(0.3)), s.np(kind)
    while giver.noun.lemma in taker.noun.group:
        giver = s.np("person")
    first = [*taker.words, get.past, *thing.words, "from", *giver.words]
    source, goal = (giver, taker) if same else (taker, giver)
    second = Clause(give, source, thing, goal, tense="past")
    return _either(s, first, second.active(s.choose(("double", "to"))))


def synonym(s: Sampler, same: bool) -> Pair:
    """One word is replaced, by one that means the same or by one that does not; the voice may change as well."""
    while True:
        clause = _thing(s)
        draw = s.rng.random()
        subject, obj, verb = clause.subject, clause.patient, clause.verb
        changed: Clause | None = None
        if draw < 0.35:
            verbs = s.verbs_for("person", "person" if obj.noun.kind == "name" else obj.noun.kind)
            alike_verb = same_verb(s, verb, verbs)
            if alike_verb:
                changed = replace(clause, verb=alike_verb if same else other_verb(s, clause))
        elif draw < 0.7:
            alike = same_noun(s, obj)
            if alike:
                changed = replace(clause, object=alike if same else replace(obj, noun=other_noun(s, obj.noun)))
        else:
            alike = same_noun(s, subject)
            if alike:
                changed = replace(clause, subject=alike if same else replace(subject, noun=other_noun(s, subject.noun)))
        if changed is not None:
            return _either(s, clause.active(), changed.passive() if s.chance(0.35) else changed.active())


def _dressed(clause: Clause, adjective: str, on_subject: bool) -> Clause:
    """The clause with the adjective on its subject or else on its object, and no other."""
    return replace(
        clause,
        subject=replace(clause.subject, adjectives=(adjective,) if on_subject else ()),
        object=replace(clause.patient, adjectives=() if on_subject else (adjective,)),
    )


def modifier(s: Sampler, same: bool) -> Pair:
    """An adjective is replaced by a synonym, replaced by another one, or moves to the other noun."""
    while True:
        clause = _people(s, s.choose(("past", "present")))
        word = s.adjective("person")
        if "name" in (clause.subject.noun.kind, clause.patient.noun.kind):
            continue
        on_subject = s.chance(0.5)
        first = _dressed(clause, word.lemma, on_subject)
        if s.chance(0.5):
            second = _dressed(clause, word.lemma, on_subject == same)
            return _either(s, first.active(), second.passive())
        alike = s.synonym(word)
        if alike is None:
            continue
        different = s.adjective("person")
        if different.lemma in word.group:
            continue
        second = _dressed(clause, alike if same else different.lemma, on_subject)
        return _either(s, first.active(), second.passive() if s.chance(0.3) else second.active())


def _definite(np: NP) -> NP:
    """Under negation "a", "some" and numbers would leave open what is denied."""
    return replace(np, det="the") if np.det in ("a", "some", "two", "three", "much") else np


def negation(s: Sampler, same: bool) -> Pair:
    """A negation is there in both or in one; "failed to" and "it is not true that" negate as well."""
    clause = _thing(s, s.choose(("past", "past", "present", "future")))
    clause = replace(clause, subject=_definite(clause.subject), object=_definite(clause.patient), negated=True)
    plain = replace(clause, negated=False)
    past = clause.tense == "past"
    forms = {  # by whether they deny what is said
        False: [plain.passive(), say("it is true that {}", plain.active())],
        True: [clause.passive(), say("it is not true that {}", plain.active())],
    }
    first = s.chance(0.5)  # whether the first is negated
    if first:
        forms[True].append(say("it is false that {}", plain.active()))
        forms[False].append(say("it is not false that {}", plain.active()))
    if past:
        done = say("{} {} {}", "managed to" if first else "did not fail to", clause.verb.lemma, clause.complements())
        undone = say("{} {} {}", "failed to" if first else "did not manage to", clause.verb.lemma, clause.complements())
        forms[False].append(say("{} {}", clause.subject, done))
        forms[True].append(say("{} {}", clause.subject, undone))
    return _either(s, (clause if first else plain).active(), s.choose(forms[first == same]))


def temporal_order(s: Sampler, same: bool) -> Pair:
    """A before B; B after A; before B, A."""
    first, second = s.intransitive("person", "past"), _thing(s, "past")
    first = replace(first, time="", frequency="", place=(), manner="")
    while second.subject.noun.lemma in first.subject.noun.group:
        second = _thing(s, "past")
    a, b = first.active(), second.active()
    statement = [*a, s.choose(("before",)), *b]
    right = ([*b, "after", *a], ["before", *b, ",", *a], ["after", *a, ",", *b], [*a, "and", "then", *b])
    wrong = ([*b, "before", *a], ["after", *b, ",", *a], ["before", *a, ",", *b], [*b, "and", "then", *a])
    return _either(s, statement, s.choose(right if same else wrong))


def comparative(s: Sampler, same: bool) -> Pair:
    """A is taller than B; B is shorter than A."""
    kind = s.choose(("person", "object"))
    low, high = s.choose(s.lexicon.opposites[kind])
    item = kind if kind == "person" else s.choose(("object", "clothing", "vehicle"))
    a, b = s.several(lambda: s.np(item, adjective=0), 2)
    up, down = (low, high) if s.chance(0.5) else (high, low)
    tense = s.choose(("present", "past"))
    first = than(a, up, b, tense)
    right = (than(b, down, a, tense), not_as(b, up, a, tense))
    wrong = (than(a, down, b, tense), than(b, up, a, tense), not_as(a, up, b, tense))
    return _either(s, first, s.choose(right if same else wrong))


def than(a: NP, adjective: Adjective, b: NP, tense: str) -> list[str]:
    return [*a.words, be(tense, a.plural), adjective.comparative, "than", *b.words]


def not_as(a: NP, adjective: Adjective, b: NP, tense: str) -> list[str]:
    return [*a.words, be(tense, a.plural), "not", "as", adjective.lemma, "as", *b.words]


def adverbial(s: Sampler, same: bool) -> Pair:
    """An adverb moves to the front or is replaced by a synonym; or it is another one."""
    while True:
        word: Word = s.word(s.lexicon.adverbs["manner"])
        alike = s.synonym(word)
        other = s.word(s.lexicon.adverbs["manner"])
        if alike is None or other.lemma in word.group:
            continue
        clause = _thing(s, "past")
        chosen = s.choose((alike, word.lemma)) if same else other.lemma
        first = replace(clause, manner=word.lemma).active()
        in_front = chosen == word.lemma or s.chance(0.4)
        moved = [chosen, *clause.active()] if in_front else replace(clause, manner=chosen).passive()
        return _either(s, first, moved)


def coordination(s: Sampler, same: bool) -> Pair:
    """A and B did it; B and A did it; "or" is something else, and so is another partner."""
    clause = _thing(s, s.choose(("past", "future")))
    a, b = s.np("person", False, 0.1), s.np("person", False, 0.1)
    joint = s.choose(("and", "or"))
    other = {"and": "or", "or": "and"}[joint]
    first = say("{} {} {} {}", a, joint, b, clause.predicate())
    second = joint if same else other
    opening = s.choose(("", {"and": "both", "or": "either"}[second]))
    return _either(s, first, say("{} {} {} {} {}", opening, b, second, a, clause.predicate()))


PHENOMENA = by_name(
    voice,
    role_swap,
    dative,
    converse_verbs,
    synonym,
    modifier,
    negation,
    temporal_order,
    comparative,
    adverbial,
    coordination,
)
