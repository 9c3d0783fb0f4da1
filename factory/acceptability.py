"""Sentences for acceptability judgements, by phenomenon.

Each function builds one sentence, well-formed or with exactly the violation its name says. The well-formed ones are
also part of the pretraining text.
"""

from __future__ import annotations

from dataclasses import replace

from factory.grammar import MODALS, NP, Clause, Sampler, be, by_name, finite, say, verb_group
from factory.lexicon import Noun, Verb, words

ANIMATE = ("person", "person", "animal")
NO_OBJECT = words(
    "sleep smile arrive disappear laugh sneeze cough snore yawn vanish weep grin hesitate giggle shiver tumble blush tremble"
)
WITH_OBJECT = words(
    "devour admire greet locate construct repair destroy examine rescue hire chase borrow choose invent protect damage purchase "
    "inspect embrace possess"
)


def _plain(s: Sampler, kind: str, plural: bool, adjective: float = 0.25) -> NP:
    """A noun phrase whose determiner does not show its number, so that only the noun does."""
    return s.np(kind, plural, adjective, det=s.choose(("the", "the", "the", "my", "our", "his", "her")))


def _predicate(s: Sampler, kind: str, plural: bool) -> list[str]:
    """A predicate in the present whose verb has the given number."""
    draw = s.rng.random()
    if draw < 0.35:
        return [finite(s.verb(s.lexicon.intransitive[kind]), "present", plural), *_adverbial(s)]
    if draw < 0.65:
        clause = s.transitive(kind, "present", plain=True)
        return [finite(clause.verb, "present", plural), *clause.patient.words]
    if draw < 0.8 and kind in ("person", "place"):
        return [be("present", plural), s.adjective(kind).lemma]
    verb = s.verb(s.lexicon.intransitive[kind])
    auxiliary, rest = verb_group(verb, s.tense_for(verb, s.choose(("perfect", "progressive", "present"))), plural)
    return say("{} {} {}", auxiliary, rest, _adverbial(s))


def _adverbial(s: Sampler) -> list[str]:
    draw = s.rng.random()
    if draw < 0.3:
        return s.pp(("place",))
    return [s.word(s.lexicon.adverbs["manner"]).lemma] if draw < 0.5 else []


def agreement(s: Sampler, good: bool) -> list[str]:
    kind = s.choose((*ANIMATE, "vehicle", "abstract"))
    subject = _plain(s, kind, s.chance(0.5))
    return [*subject.words, *_predicate(s, kind, subject.plural == good)]


def agreement_across_a_phrase(s: Sampler, good: bool) -> list[str]:
    """The noun nearest to the verb has the other number: the cars near the house ... ."""
    kind = s.choose(ANIMATE)
    plural = s.chance(0.5)
    near = s.choose(("person", "object", "animal", "vehicle", "place"))
    preposition = s.choose(("near", "behind", "beside", "next to", "in front of")).split()
    tail = [*preposition, *_plain(s, near, not plural, 0.1).words]
    return [*_plain(s, kind, plural).words, *tail, *_predicate(s, kind, plural == good)]


def agreement_across_a_relative_clause(s: Sampler, good: bool) -> list[str]:
    """A relative clause with a noun of the other number stands between subject and verb."""
    plural = s.chance(0.5)
    kind = s.choose(ANIMATE)
    subject = _plain(s, kind, plural, 0.1)
    other = _plain(s, "person", not plural, 0.1)
    pronoun = s.choose(("who", "that")) if kind == "person" else "that"
    tense = s.choose(("past", "present"))
    if s.chance(0.5):
        inner = [*other.words, finite(s.verb(s.verbs_for("person", kind)), tense, other.plural)]
    else:
        inner = [finite(s.verb(s.verbs_for(kind, "person")), tense, plural), *other.words]
    return [*subject.words, pronoun, *inner, *_predicate(s, kind, plural == good)]


def coordination(s: Sampler, good: bool) -> list[str]:
    """Two singular nouns joined by "and" take a plural verb; "both ... and", "either ... or" keep their partners."""
    first, second = (s.np("person", False, 0.1, det=s.choose(("the", "a", "my"))) for _ in range(2))
    if s.chance(0.5):
        return [*first.words, "and", *second.words, *_predicate(s, "person", good)]
    opening, joint = s.choose((("both", "and"), ("either", "or"), ("neither", "nor")))
    wrong = s.choose([j for j in ("and", "or", "nor") if j != joint])
    verb = s.verb(s.lexicon.intransitive["person"])
    return [opening, *first.words, joint if good else wrong, *second.words, s.choose(MODALS), verb.lemma]


def word_order(s: Sampler, good: bool) -> list[str]:
    """The bad ones swap two neighbours: determiner and noun, adjective and noun, verb and object, preposition and its
    noun.
    """
    clause = s.transitive("person", plain=True, tense=s.choose(("past", "past", "future", "modal")))
    kind = "person" if clause.patient.noun.kind == "name" else clause.patient.noun.kind
    obj = s.np(kind, adjective=1.0, name=0)
    subject = clause.subject.words
    auxiliary, verb = verb_group(clause.verb, clause.tense, clause.subject.plural, modal=clause.modal)
    verb = [auxiliary, *verb] if auxiliary else verb
    place = s.pp(("place",))
    if good:
        return [*subject, *verb, *obj.words, *place]
    draw = s.rng.random()
    if draw < 0.25:
        return [*subject, *verb, obj.words[0], obj.head, obj.adjectives[0], *place]
    if draw < 0.45:
        return [*subject, *verb, *obj.words[1:], obj.words[0], *place]
    if draw < 0.7:
        return [*subject, *obj.words, *verb, *place]
    if draw < 0.85:
        return [*subject, *verb, *obj.words, *place[1:], place[0]]
    return [*verb, *subject, *obj.words, *place]


def polar_question(s: Sampler, good: bool) -> list[str]:
    clause = _person_clause(s)
    auxiliary, rest = clause.group(clause.subject, support=True)
    tail = [*clause.complements(), "?"]
    if good:
        return [auxiliary, *clause.subject.words, *rest, *tail]
    if auxiliary in ("do", "does", "did"):
        inflected = finite(clause.verb, "past" if auxiliary == "did" else "present", auxiliary == "do")
        if inflected == clause.verb.lemma:
            inflected = clause.verb.third
        if s.chance(0.5):
            return [auxiliary, *clause.subject.words, inflected, *tail]
        return [inflected, *clause.subject.words, *tail]
    if s.chance(0.5):
        return [auxiliary, *rest, *clause.subject.words, *tail]
    return ["did" if s.chance(0.5) else "do", auxiliary, *clause.subject.words, *rest, *tail]


def _person_clause(s: Sampler, tense: str | None = None) -> Clause:
    """Somebody does something; the verb's past differs from its base, so that a wrong form shows."""
    return s.transitive("person", tense or s.choose(("present", "past", "future", "perfect", "modal")), plain=True)


def object_question(s: Sampler, good: bool) -> list[str]:
    """What did the doctor buy? The bad ones leave the verb in place, fill the gap, or lack the auxiliary."""
    clause = _person_clause(s, s.choose(("past", "past", "present", "future")))
    if good:
        return clause.ask_object()
    question = clause.ask_object()
    auxiliary, rest = clause.group(clause.subject, support=True)
    draw = s.rng.random()
    if draw < 0.4:
        return [question[0], *clause.subject.words, auxiliary, *rest, "?"]
    if draw < 0.75:
        return [*question[:-1], *clause.patient.words, "?"]
    return [question[0], auxiliary, *rest, *clause.subject.words, "?"]


def negation(s: Sampler, good: bool) -> list[str]:
    clause = _person_clause(s, s.choose(("present", "past", "past")))
    subject, auxiliary = clause.subject.words, clause.group(clause.subject, support=True)[0]
    form = finite(clause.verb, clause.tense, clause.subject.plural)
    if form == clause.verb.lemma:
        form = clause.verb.third
    tail = clause.complements()
    if s.chance(0.3):  # words like "ever" and "any" need a negation before them
        opener = ["nobody"] if good else ["somebody"]
        return [*opener, "ever", clause.verb.past, *tail]
    if good:
        return [*subject, auxiliary, "not", clause.verb.lemma, *tail]
    draw = s.rng.random()
    if draw < 0.4:
        return [*subject, "not", form, *tail]
    if draw < 0.75:
        return [*subject, auxiliary, "not", form, *tail]
    return [*subject, clause.verb.lemma, "not", auxiliary, *tail]


def determiner_and_number(s: Sampler, good: bool) -> list[str]:
    kind = s.choose(("person", "animal", "object", "vehicle", "clothing"))
    noun = s.noun(kind)
    plural = s.chance(0.5)
    det = s.choose(("these", "those", "many", "several", "two") if plural else ("this", "that", "a", "every", "each"))
    adjectives = (s.adjective(kind).lemma,) if s.chance(0.4) else ()
    phrase = NP(noun, plural == good, det, adjectives)
    if s.chance(0.5) and kind in ("person", "animal"):
        return [*phrase.words, s.choose(MODALS), s.verb(s.lexicon.intransitive[kind]).lemma, *_adverbial(s)]
    return [*s.np("person").words, s.verb(s.verbs_for("person", kind)).past, *phrase.words]


def reflexive(s: Sampler, good: bool) -> list[str]:
    nouns: list[Noun] = [n for n in (*s.lexicon.nouns["person"], *s.lexicon.names) if n.gender and s.allowed(n)]
    noun = s.choose(nouns)
    plural = noun.kind != "name" and s.chance(0.35)
    subject = NP(noun, plural, "" if noun.kind == "name" else s.choose(("the", "my", "our")))
    right = subject.reflexive
    form = right if good else s.choose([r for r in ("himself", "herself", "themselves") if r != right])
    other = s.np("person", det="the") if s.chance(0.3) else None
    tail = ["in", "front", "of", *other.words] if other else _adverbial(s)
    return [*subject.words, s.verb(s.verbs_for("person", "person")).past, form, *tail]


def passive(s: Sampler, good: bool) -> list[str]:
    clause = _person_clause(s, s.choose(("past", "past", "present", "perfect", "future")))
    if good:
        return clause.passive()
    auxiliary, rest = clause.group(clause.patient, passive=True)
    verb, agent = clause.verb, ["by", *clause.subject.words]
    draw = s.rng.random()
    if draw < 0.3:
        wrong = verb.gerund if "be" in rest or "been" in rest else verb.lemma
        return [*clause.patient.words, auxiliary, *rest[:-1], wrong, *agent]
    if draw < 0.6:
        inserted = s.np(clause.patient.noun.kind).words
        return [*clause.patient.words, auxiliary, *rest, *inserted, *agent]
    if draw < 0.8:
        return [*clause.patient.words, auxiliary, *rest, *clause.subject.words]
    return [*clause.patient.words, verb.participle, auxiliary, *rest[:-1], *agent]


def dative(s: Sampler, good: bool) -> list[str]:
    """Verbs such as "explain" need "to"; "to" must not go with two bare objects."""
    alternating = s.chance(0.5)
    clause = s.ditransitive(alternating, s.choose(("past", "past", "future")))
    if good:
        return clause.active(s.choose(("double", "to")) if alternating else "to")
    if not alternating:
        return clause.active("double")
    assert clause.recipient is not None
    auxiliary, rest = clause.group(clause.subject)
    front = say("{} {} {}", clause.subject, auxiliary, rest)
    if s.chance(0.5):
        return say("{} to {} to {}", front, clause.recipient, clause.patient)
    return say("{} {} {} to", front, clause.patient, clause.recipient)


def argument_structure(s: Sampler, good: bool) -> list[str]:
    """Verbs that take no object, and verbs that need one."""
    tense = s.choose(("past", "future", "modal"))
    if s.chance(0.5):
        verbs: list[Verb] = [v for v in s.lexicon.intransitive["person"] if v.lemma in NO_OBJECT and s.allowed(v)]
        clause = s.intransitive("person", tense)
        clause = replace(clause, verb=s.choose(verbs))
        if good:
            return clause.active()
        return replace(clause, object=s.np(s.choose(("person", "object", "place")))).active()
    frames = [f for f in s.lexicon.frames["person"] if f.verb.lemma in WITH_OBJECT and s.allowed(f.verb)]
    frame = s.choose(frames)
    clause = Clause(frame.verb, s.np("person"), s.np(s.choose(frame.objects)), tense=tense, modal=s.choose(MODALS))
    clause = replace(clause, place=tuple(s.pp(("place",))) if s.chance(0.5) else ())
    return clause.active() if good else replace(clause, object=None).active()


def auxiliary_and_verb_form(s: Sampler, good: bool) -> list[str]:
    """has bought, will buy, is buying, can buy: the auxiliary decides the form of the verb."""
    clause = _person_clause(s, s.choose(("perfect", "pluperfect", "progressive", "future", "modal")))
    auxiliary, rest = clause.group(clause.subject)
    while not auxiliary:  # a verb of state that took no progressive
        clause = _person_clause(s, "progressive")
        auxiliary, rest = clause.group(clause.subject)
    forms = {clause.verb.lemma, clause.verb.participle, clause.verb.gerund, clause.verb.third} - {rest[0]}
    if auxiliary in ("is", "are"):  # "is bought" is a passive, wrong here only because an object follows
        forms -= {clause.verb.participle}
    form = rest[0] if good else s.choose(sorted(forms))
    return [*clause.subject.words, auxiliary, form, *clause.complements()]


def comparative(s: Sampler, good: bool) -> list[str]:
    kind = s.choose(("person", "object"))
    pair = s.choose([p for p in s.lexicon.opposites[kind] if all(s.allowed(a) for a in p)] or s.lexicon.opposites[kind])
    adjective = s.choose(pair)
    item = kind if kind == "person" else s.choose(("object", "clothing", "vehicle"))
    first, second = _plain(s, item, s.chance(0.3)), _plain(s, item, s.chance(0.3))
    verb = be(s.choose(("present", "past")), first.plural)
    plain, more = adjective.lemma, adjective.comparative
    if s.chance(0.5):
        middle = f"{more} than" if good else s.choose((f"more {more} than", f"{more} as", f"{plain} than"))
    else:
        middle = f"as {plain} as" if good else s.choose((f"as {more} as", f"as {plain} than", f"more as {plain}"))
    return say("{} {} {} {}", first, verb, middle, second)


def relative_clause(s: Sampler, good: bool) -> list[str]:
    """The book that the doctor bought ...: people take "who", things do not, and the gap stays empty."""
    clause = _person_clause(s, "past")
    head = clause.object
    assert head is not None
    if head.noun.kind == "name":
        head = s.np("person", name=0)
    head = replace(head, det="the", adjectives=())
    animate = head.noun.kind == "person"
    pronoun = "who" if animate else s.choose(("that", "which"))
    gap: list[str] = []
    if not good:
        if s.chance(0.4):
            pronoun = "which" if animate else "who"
        else:
            gap = [s.choose(("him", "her")) if animate else "them" if head.plural else "it"]
    main = [be(s.choose(("present", "past")), head.plural), *_state(s, head.noun.kind)]
    return [*head.words, pronoun, *clause.subject.words, clause.verb.past, *gap, *main]


def _state(s: Sampler, kind: str) -> list[str]:
    return [s.adjective(kind).lemma] if kind != "name" and s.chance(0.6) else s.pp(("place",))


def tense_and_time(s: Sampler, good: bool) -> list[str]:
    """Yesterday goes with the past, tomorrow with the future."""
    past = s.chance(0.5)
    clause = _person_clause(s, "past" if past == good else s.choose(("future",)))
    time = s.choose(("yesterday", "last week", "last year") if past else ("tomorrow", "next week", "next year")).split()
    return [*time, *clause.active()] if s.chance(0.5) else [*clause.active(), *time]


def quantity(s: Sampler, good: bool) -> list[str]:
    """Much and little for what cannot be counted, many and few for what can."""
    countable = s.chance(0.5)
    kind = s.choose(("food", "object")) if countable else "mass"
    noun = s.noun(kind)
    counted, uncounted = ("many", "too many", "a few"), ("much", "too much", "a little")
    det = s.choose(counted if countable == good else uncounted)
    subject = s.np("person")
    verb = s.verb(s.verbs_for("person", kind)).lemma
    return say("{} did not {} {} {}", subject, verb, det, noun.plural if countable else noun.lemma)


def existential(s: Sampler, good: bool) -> list[str]:
    """There is a book, there are two books; not "there is the every book"."""
    kind = s.choose(("person", "object", "animal", "vehicle", "food"))
    plural = s.chance(0.5)
    det = s.choose(("two", "many", "several", "some", "no") if plural else ("a", "a", "no"))
    phrase = s.np(kind, plural, det=det)
    return ["there", be(s.choose(("present", "past")), plural == good), *phrase.words, *s.pp(("place",))]


PHENOMENA = by_name(
    agreement,
    agreement_across_a_phrase,
    agreement_across_a_relative_clause,
    coordination,
    word_order,
    polar_question,
    object_question,
    negation,
    determiner_and_number,
    reflexive,
    passive,
    dative,
    argument_structure,
    auxiliary_and_verb_form,
    comparative,
    relative_clause,
    tense_and_time,
    quantity,
    existential,
)
