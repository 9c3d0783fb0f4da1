"""A generative grammar of English sentences: noun phrases, verb groups, clauses and a sampler that fills them with
words.

Sentences are lists of lower-case tokens (names keep their capital) until `render` makes text of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from factory.lexicon import Adjective, Lexicon, Noun, Verb, Word, article, lexicon, words

T = TypeVar("T")
B = TypeVar("B", bound=Callable[..., object])

ADJECTIVE_CLASSES = {
    "person": ("person",),
    "animal": ("size", "colour"),
    "food": ("food", "size"),
    "mass": ("food",),
    "object": ("object", "object", "size", "colour"),
    "clothing": ("object", "colour"),
    "vehicle": ("object", "size", "colour"),
    "place": ("place", "place", "size"),
    "product": ("object",),
    "abstract": ("abstract",),
    "text": ("abstract", "size"),
    "work": ("abstract",),
}
PREPOSITIONS = {
    "place": ("in", "near", "behind", "outside", "inside", "opposite"),
    "person": ("beside", "behind", "with", "near", "next to", "in front of"),
    "object": ("under", "on", "beside", "near", "behind", "next to"),
    "animal": ("beside", "behind", "near", "with"),
    "vehicle": ("in", "behind", "near", "beside"),
}
SINGULAR_DETERMINERS = words("the the the a a this that every each my our his her their")
PLURAL_DETERMINERS = words("the the the these those some many several two three my our few")
MASS_DETERMINERS = ("the", "the", "some", "this", "much", "my", "her")
TENSES = (
    *("present",) * 3,
    *("past",) * 3,
    "future",
    "perfect",
    "pluperfect",
    "progressive",
    "past progressive",
    "modal",
)
MODALS = ("can", "could", "must", "should", "may", "might", "would")


@dataclass(frozen=True)
class NP:
    """A noun phrase: determiner, adjectives, noun, and a tail (prepositional phrase or relative clause)."""

    noun: Noun
    plural: bool = False
    det: str = "the"
    adjectives: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()

    @property
    def head(self) -> str:
        return self.noun.plural if self.plural else self.noun.lemma

    @property
    def words(self) -> list[str]:
        core = [*self.adjectives, self.head]
        det = article(core[0]) if self.det == "a" else self.det
        return [*([det] if det else []), *core, *self.tail]

    @property
    def pronoun(self) -> str:
        if self.plural:
            return "they"
        return {"female": "she", "male": "he"}.get(self.noun.gender, "they" if self.noun.kind == "person" else "it")

    @property
    def reflexive(self) -> str:
        if self.plural:
            return "themselves"
        return {"female": "herself", "male": "himself"}.get(self.noun.gender, "itself")


def say(template: str, *parts: NP | Sequence[str]) -> list[str]:
    """The tokens of a template, each `{}` of which stands for the next part: a noun phrase, tokens, or words as text."""
    rest = iter(parts)

    def tokens(part: NP | Sequence[str]) -> Sequence[str]:
        return part.words if isinstance(part, NP) else part.split() if isinstance(part, str) else part

    return [token for word in template.split() for token in (tokens(next(rest)) if word == "{}" else (word,))]


def be(tense: str, plural: bool) -> str:
    return {"present": ("is", "are"), "past": ("was", "were")}[tense][plural]


def finite(verb: Verb, tense: str, plural: bool) -> str:
    """The simple present or past form."""
    if tense == "past":
        return verb.past
    return verb.lemma if plural else verb.third


def verb_group(
    verb: Verb, tense: str, plural: bool, *, passive: bool = False, support: bool = False, modal: str = "can"
) -> tuple[str, list[str]]:
    """The finite auxiliary ("" when there is none) and the words after it.

    `support` asks for an auxiliary (do-support) even in the simple tenses, as questions and negation need it.
    """
    last = verb.participle if passive else ""
    if tense in ("present", "past"):
        if passive:
            return be(tense, plural), [last]
        if support:
            return ("did" if tense == "past" else "do" if plural else "does"), [verb.lemma]
        return "", [finite(verb, tense, plural)]
    if tense in ("future", "modal"):
        auxiliary = "will" if tense == "future" else modal
        return auxiliary, ["be", last] if passive else [verb.lemma]
    if tense in ("perfect", "pluperfect"):
        auxiliary = "had" if tense == "pluperfect" else "have" if plural else "has"
        return auxiliary, ["been", last] if passive else [verb.participle]
    if tense in ("progressive", "past progressive"):
        auxiliary = be("past" if tense.startswith("past") else "present", plural)
        return auxiliary, ["being", last] if passive else [verb.gerund]
    raise ValueError(f"unknown tense {tense!r}")


@dataclass(frozen=True)
class Clause:
    """Who did what to whom, how, where and when; its methods say it in different ways."""

    verb: Verb
    subject: NP
    object: NP | None = None
    recipient: NP | None = None
    tense: str = "past"
    negated: bool = False
    frequency: str = ""
    manner: str = ""
    place: tuple[str, ...] = ()
    time: str = ""
    modal: str = "can"

    @property
    def patient(self) -> NP:
        """The object of a clause that has one."""
        assert self.object is not None
        return self.object

    def _end(self) -> list[str]:
        return [*([self.manner] if self.manner else []), *self.place, *([self.time] if self.time else [])]

    def group(self, subject: NP, passive: bool = False, support: bool = False) -> tuple[str, list[str]]:
        return verb_group(
            self.verb, self.tense, subject.plural, passive=passive, support=support or self.negated, modal=self.modal
        )

    def _middle(self, subject: NP, passive: bool = False) -> list[str]:
        auxiliary, rest = self.group(subject, passive)
        front = [auxiliary] if auxiliary else []
        return [*front, *(["not"] if self.negated else []), *([self.frequency] if self.frequency else []), *rest]

    def complements(self, dative: str = "double") -> list[str]:
        if self.recipient is None:
            return self.object.words if self.object else []
        if dative == "double":
            return [*self.recipient.words, *self.patient.words]
        return [*self.patient.words, "to", *self.recipient.words]

    def active(self, dative: str = "double", front: bool = False) -> list[str]:
        """Subject, verb, complements; `front` puts the time first."""
        if front and self.time:
            return [self.time, *replace(self, time="").active(dative)]
        return [*self.subject.words, *self._middle(self.subject), *self.complements(dative), *self._end()]

    def predicate(self) -> list[str]:
        return [*self._middle(self.subject), *self.complements(), *self._end()]

    def passive(self, by: bool = True, front: bool = False) -> list[str]:
        if front and self.time:
            return [self.time, *replace(self, time="").passive(by)]
        to = ["to", *self.recipient.words] if self.recipient else []
        agent = ["by", *self.subject.words] if by else []
        return [*self.patient.words, *self._middle(self.patient, passive=True), *to, *agent, *self._end()]

    def cleft(self, focus: str = "subject") -> list[str]:
        """It was the doctor who ..., it was the car that ... ."""
        if focus == "subject":
            return ["it", "was", *self.subject.words, "who" if self.subject.noun.animate else "that", *self.predicate()]
        return [
            "it",
            "was",
            *self.patient.words,
            "that",
            *self.subject.words,
            *self._middle(self.subject),
            *self._end(),
        ]

    def polar(self, passive: bool = False) -> list[str]:
        subject = self.patient if passive else self.subject
        auxiliary, rest = self.group(subject, passive, support=True)
        tail = ["by", *self.subject.words] if passive else self.complements()
        middle = [*(["not"] if self.negated else []), *([self.frequency] if self.frequency else [])]
        return [auxiliary, *subject.words, *middle, *rest, *tail, *self._end(), "?"]

    def ask_object(self) -> list[str]:
        auxiliary, rest = self.group(self.subject, support=True)
        to = ["to", *self.recipient.words] if self.recipient else []
        wh = "who" if self.patient.noun.kind in ("person", "name") else "what"
        return [wh, auxiliary, *self.subject.words, *rest, *to, *self._end(), "?"]

    def ask_subject(self) -> list[str]:
        singular = replace(self, subject=replace(self.subject, plural=False))
        wh = "who" if self.subject.noun.kind in ("person", "name") else "what"
        return [wh, *singular._middle(singular.subject), *self.complements(), *self._end(), "?"]

    def ask_adjunct(self, wh: str) -> list[str]:
        """where, when, why and how questions (the asked-for adjunct is left out by the caller)."""
        return [wh, *self.polar()]


def render(words: Sequence[str]) -> str:
    """Text with a capital and a full stop (unless the last token is a mark); "they 're"-like joins do not occur."""
    tokens = list(words)
    if tokens[-1] not in ".?!":
        tokens.append(".")
    text = tokens[0]
    for token in tokens[1:]:
        text += token if token in ".,?!;" or token.startswith("'") else " " + token
    text = text[0].upper() + text[1:]
    return text.replace(" i ", " I ")


def by_name(*builders: B) -> dict[str, B]:
    """Functions by what they build, which is their name in words."""
    return {builder.__name__.replace("_", " "): builder for builder in builders}


class Sampler:
    """Draws words and phrases.

    `words`: "all" for the pretraining text; "open" leaves reserved words out (training rows); "held_out" prefers them
    (validation rows). Without `quantifiers` no "every", "each", "many" or "few" is drawn: with them active and
    passive need not mean the same. `known` is the lexicon drawn from, the whole one by default.
    """

    def __init__(
        self, rng: random.Random, words: str = "all", quantifiers: bool = True, known: Lexicon | None = None
    ) -> None:
        self.rng = rng
        self.words = words
        quantities = () if quantifiers else ("every", "each", "many", "few")
        self._singular = tuple(det for det in SINGULAR_DETERMINERS if det not in quantities)
        self._plural = tuple(det for det in PLURAL_DETERMINERS if det not in quantities)
        self.lexicon = known or lexicon()
        self._split: dict[int, tuple[Sequence[Word], list[Word], list[Word]]] = {}

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def choose(self, items: Sequence[T]) -> T:
        """A closed-class choice."""
        return items[int(self.rng.random() * len(items))]

    def allowed(self, word: Word | str) -> bool:
        return self.words != "open" or not (word if isinstance(word, Word) else Word(word, ())).reserved

    def word(self, items: Sequence[Word]) -> Word:
        """A word of an open class. `items` must outlive the sampler (the lexicon's own lists do)."""
        if self.words == "all":
            return self.choose(items)
        if id(items) not in self._split:
            self._split[id(items)] = (items, [w for w in items if not w.reserved], [w for w in items if w.reserved])
        _, seen, reserved = self._split[id(items)]
        if self.words == "held_out" and reserved and (not seen or self.chance(0.6)):
            return self.choose(reserved)
        return self.choose(seen)

    def synonym(self, word: Word) -> str | None:
        """Another lemma of the word's group, or None."""
        others = [lemma for lemma in word.group if lemma != word.lemma and self.allowed(lemma)]
        return self.choose(others) if others else None

    def adjective(self, kind: str) -> Adjective:
        word = self.word(self.lexicon.adjectives[self.choose(ADJECTIVE_CLASSES[kind])])
        assert isinstance(word, Adjective)
        return word

    def noun(self, kind: str) -> Noun:
        word = self.word(self.lexicon.nouns[kind])
        assert isinstance(word, Noun)
        return word

    def name(self) -> Noun:
        word = self.word(self.lexicon.names)
        assert isinstance(word, Noun)
        return word

    def verb(self, verbs: Sequence[Verb]) -> Verb:
        word = self.word(verbs)
        assert isinstance(word, Verb)
        return word

    def verbs_for(self, subject: str, obj: str) -> list[Verb]:
        """The transitive verbs that take such a subject and such an object."""
        return self.lexicon.verbs_between(subject, obj)

    def np(
        self, kind: str, plural: bool | None = None, adjective: float = 0.25, det: str | None = None, name: float = 0.15
    ) -> NP:
        """A noun phrase of the class; without `plural` its number is drawn."""
        if kind == "person" and not plural and det is None and self.chance(name):
            return NP(self.name(), det="")
        noun = self.noun(kind)
        many = False if noun.mass else self.chance(0.4) if plural is None else plural
        if det is None:
            det = self.choose(MASS_DETERMINERS if noun.mass else self._plural if many else self._singular)
        adjectives = (self.adjective(kind).lemma,) if kind in ADJECTIVE_CLASSES and self.chance(adjective) else ()
        return NP(noun, many, det, adjectives)

    def unlike(self, draw: Callable[[], NP], *others: NP) -> NP:
        """A noun phrase, drawn again until its noun means something else than those of the others."""
        while True:
            np = draw()
            if all(np.noun.group[0] != other.noun.group[0] for other in others):
                return np

    def several(self, draw: Callable[[], NP], count: int) -> list[NP]:
        """Noun phrases of which no two mean the same."""
        chosen: list[NP] = []
        while len(chosen) < count:
            chosen.append(self.unlike(draw, *chosen))
        return chosen

    def pp(
        self, kinds: Sequence[str] = ("place", "place", "person", "object", "vehicle"), plural: bool | None = None
    ) -> list[str]:
        kind = self.choose(kinds)
        return [*self.choose(PREPOSITIONS[kind]).split(), *self.np(kind, plural, adjective=0.15, name=0).words]

    def tense_and_time(self, tense: str | None = None) -> tuple[str, str]:
        tense = tense or self.choose(TENSES)
        kind = {"past": "past", "future": "future", "progressive": "present"}.get(tense)
        time = self.word(self.lexicon.adverbs[kind]).lemma if kind and self.chance(0.2) else ""
        return tense, time

    def tense_for(self, verb: Verb, tense: str) -> str:
        """The tense, or the simple one where a verb of state has no progressive."""
        if verb.lemma in self.lexicon.stative and tense.endswith("progressive"):
            return "past" if tense.startswith("past") else "present"
        return tense

    def transitive(
        self, subject_kind: str | None = None, tense: str | None = None, plain: bool = False, **fixed: NP
    ) -> Clause:
        """A transitive clause whose verb fits its subject and object; `plain` leaves adverbials out."""
        kind = subject_kind or self.choose(
            ("person", "person", "person", "person", "animal", "work", "abstract", "vehicle")
        )
        frames = self.lexicon.frames[kind]
        frame = self.choose(frames)
        while not self.allowed(frame.verb):
            frame = self.choose(frames)
        tense, time = self.tense_and_time(tense)
        subject = fixed.get("subject") or self.np(kind)
        obj = fixed.get("object") or self.np(self.choose(frame.objects))
        tense = self.tense_for(frame.verb, tense)
        clause = Clause(frame.verb, subject, obj, tense=tense, modal=self.choose(MODALS), time=time)
        return replace(clause, time="") if plain else self.adjuncts(clause)

    def intransitive(self, kind: str | None = None, tense: str | None = None, subject: NP | None = None) -> Clause:
        kind = kind or self.choose(("person", "person", "animal", "object", "vehicle", "abstract"))
        verb = self.verb(self.lexicon.intransitive[kind])
        tense, time = self.tense_and_time(tense)
        tense = self.tense_for(verb, tense)
        return self.adjuncts(
            Clause(verb, subject or self.np(kind), tense=tense, modal=self.choose(MODALS), time=time), 0.45
        )

    def ditransitive(self, alternating: bool = True, tense: str | None = None) -> Clause:
        verb = self.verb(self.lexicon.dative if alternating else self.lexicon.to_only)
        kind = (
            self.choose(("object", "text", "food", "clothing"))
            if alternating
            else self.choose(("text", "abstract", "object"))
        )
        tense, time = self.tense_and_time(tense)
        return Clause(
            verb, self.np("person"), self.np(kind), self.np("person"), tense=tense, modal=self.choose(MODALS), time=time
        )

    def adjuncts(self, clause: Clause, place: float = 0.2) -> Clause:
        agentive = clause.subject.noun.animate
        manner = self.word(self.lexicon.adverbs["manner"]).lemma if agentive and self.chance(0.2) else ""
        where = tuple(self.pp(("place",))) if self.chance(place) else ()
        often = (
            self.word(self.lexicon.adverbs["frequency"]).lemma
            if clause.tense == "present" and self.chance(0.25)
            else ""
        )
        return replace(clause, manner=manner, place=where, frequency=often)
