"""Velic, a made language that says what the demo grammar's clauses say, in its own way.

Stems are invented (from a checksum of the English lemma; synonyms share one), everything else is grammar:

- the verb comes last, a question begins with it; what English says with a preposition stands after its noun;
- adjectives and demonstratives follow the noun and agree with it in number and case; numerals leave it singular;
- articles and possessives are endings; vowels of an ending go with the last vowel of the stem (e, i or a, o, u);
- the verb's ending tells negation, tense, whether the object is definite, and the subject's number;
- a passive is said with the object in front, a relative clause with a participle before its noun.

So no word-by-word rendering is right. Velic has no capitals.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache

from factory.grammar import NP, Clause
from factory.lexicon import Lexicon, Word, core_lexicon, lexicon

FRONT = "ei"
CONSONANTS = "bdfghjklmnprstvz"
VOWELS = "aeiou"
PLURAL = {True: "ik", False: "uk"}  # by whether the stem's last vowel is a front one, as all of these
POSSESSIVE = {"my": {True: "em", False: "am"}, "our": {True: "ez", False: "az"}}
CASES = {"": "", "object": "n", "recipient": "l", "in": "s"}
NEGATION = {True: "im", False: "um"}
TENSE = {"present": ("", ""), "past": ("ov", "ev"), "future": ("ul", "il"), "perfect": ("of", "ef")}
MODALS = {"can": "tudav", "must": "kezir"}
IMPERSONAL = {True: "ish", False: "ush"}
PARTICIPLE = {True: "esh", False: "osh"}
INFINITIVE = {True: "ini", False: "unu"}
DEMONSTRATIVES = {"this": "ozhat", "these": "ozhat", "that": "ezhir", "those": "ezhir"}
BEFORE_NOUN = {"two": "dulg", "three": "terv", "many": "sokh", "some": "nevk", "every": "mindh"}
NUMERALS = ("two", "three", "every")  # the noun and the verb stay singular
NAME_MARKERS = {"": "", "object": "uvn", "recipient": "uvl", "in": "uvs"}
AFTER_NOUN = {"near": "tovig", "behind": "hazeg", "beside": "melog", "outside": "kivag", "opposite": "szemg"}
DEFINITE = ("the", "this", "these", "that", "those", "my", "our", "")
QUESTION = "kha"
AND = "eshk"
WHO, WHAT = "mirk", "molk"


def _invent(word: str) -> Iterator[str]:
    """Stems for a word, ever new ones: two syllables, closed by a consonant."""
    for attempt in range(1000):
        draw = hashlib.sha256(f"velic {word} {attempt}".encode()).digest()
        letters = [CONSONANTS[draw[0] % 16], VOWELS[draw[1] % 5], CONSONANTS[draw[2] % 16]]
        letters += [CONSONANTS[draw[3] % 16]] if draw[4] % 3 == 0 else []
        yield "".join([*letters, VOWELS[draw[5] % 5], CONSONANTS[draw[6] % 16]])


@cache
def stems() -> dict[str, str]:
    """Stem by "class lemma" for all words that Velic has; no stem begins another one or an English word."""
    english = [*lexicon().word_forms(), *(name.lemma.lower() for name in lexicon().names)]
    beginnings = {word[:length] for word in english for length in range(2, len(word) + 1)}
    invented: dict[str, str] = {}
    taken: set[str] = set()
    for key in sorted({f"{kind} {word.group[0]}" for kind, word in _open_words(core_lexicon())}):
        stem = next(
            stem for stem in _invent(key) if stem not in beginnings and not any(t[:5] == stem[:5] for t in taken)
        )
        taken.add(stem)
        invented[key] = stem
    return invented


def _open_words(words: Lexicon) -> Iterator[tuple[str, Word]]:
    yield from (("noun", noun) for nouns in words.nouns.values() for noun in nouns)
    yield from (("verb", verb) for verb in words.all_verbs())
    yield from (("adjective", adjective) for group in words.adjectives.values() for adjective in group)
    yield from (("adverb", word) for group in words.adverbs.values() for word in group)


def stem(kind: str, word: Word) -> str:
    return stems()[f"{kind} {word.group[0]}"]


def is_front(word: str) -> bool:
    """Whether the last vowel of the word is a front one."""
    return next(letter for letter in reversed(word) if letter in VOWELS) in FRONT


def _joined(word: str, ending: str, front: bool) -> str:
    """The ending after the word, with a linking vowel between two consonants."""
    if ending and ending[0] not in VOWELS and word[-1] not in VOWELS:
        return word + ("e" if front else "a") + ending
    return word + ending


def noun_form(base: str, plural: bool, case: str, det: str = "a") -> str:
    """stem, plural, possessive or article, case."""
    front = is_front(base)
    word = base + (PLURAL[front] if plural else "")
    if det in POSSESSIVE:
        word += POSSESSIVE[det][front]
    elif det in DEFINITE:
        word += "e" if front else "a"
    return _joined(word, CASES[case], front)


def is_plural(np: NP) -> bool:
    """Plural for Velic: after a numeral everything is singular."""
    return np.plural and np.det not in NUMERALS


def phrase(np: NP, case: str = "", relative: list[str] | None = None) -> list[str]:
    """The noun phrase in a case; `relative` is what a participle says of it."""
    front = relative or []
    if np.noun.kind == "name":
        marker = NAME_MARKERS[case]
        return [*front, np.noun.lemma.lower(), *([marker] if marker else [])]
    plural = is_plural(np)
    before = [BEFORE_NOUN[np.det]] if np.det in BEFORE_NOUN else []
    noun = noun_form(stem("noun", np.noun), plural, case, np.det)
    after = [noun_form(_adjective(lemma), plural, case) for lemma in np.adjectives]
    after += [noun_form(DEMONSTRATIVES[np.det], plural, case)] if np.det in DEMONSTRATIVES else []
    return [*front, *before, noun, *after]


@cache
def _adjectives() -> dict[str, str]:
    words = core_lexicon().adjectives.values()
    return {word.lemma: stem("adjective", word) for group in words for word in group}


def _adjective(lemma: str) -> str:
    return _adjectives()[lemma]


def adjective_form(lemma: str, subject: NP, negated: bool = False, past: bool = False) -> str:
    """An adjective as predicate: it agrees like a verb ("the boys were tired")."""
    return finite(_adjective(lemma), "past" if past else "present", is_plural(subject), negated=negated)


def finite(base: str, tense: str, plural: bool, *, negated: bool = False, definite: bool = False) -> str:
    front = is_front(base)
    word = (
        base
        + (NEGATION[front] if negated else "")
        + TENSE[tense][front]
        + (("e" if front else "a") if definite else "")
    )
    return _joined(word, "t", front) if plural else word


def is_definite(np: NP | None) -> bool:
    return np is not None and (np.noun.kind == "name" or np.det in DEFINITE)


def verb(clause: Clause, plural: bool | None = None, impersonal: bool = False) -> list[str]:
    """The verb group of a clause, one word or (with a modal) two."""
    base = stem("verb", clause.verb)
    many = is_plural(clause.subject) if plural is None else plural
    definite = is_definite(clause.object)
    if clause.tense == "modal":
        modal = finite(MODALS[clause.modal], "present", many, negated=clause.negated, definite=definite)
        return [base + INFINITIVE[is_front(base)], modal]
    if impersonal:
        front = is_front(base)
        return [base + (NEGATION[front] if clause.negated else "") + TENSE[clause.tense][front] + IMPERSONAL[front]]
    return [finite(base, clause.tense, many, negated=clause.negated, definite=definite)]


def place(preposition: str, np: NP) -> list[str]:
    """ "in the park" is a case, "near the park" a word after it."""
    return phrase(np, "in") if preposition == "in" else [*phrase(np, "recipient"), AFTER_NOUN[preposition]]


def _others(clause: Clause) -> list[str]:
    return phrase(clause.recipient, "recipient") if clause.recipient else []


def statement(clause: Clause, where: list[str], when: list[str], how: list[str]) -> list[str]:
    """time, subject, recipient, object, place, manner, verb."""
    objects = phrase(clause.object, "object") if clause.object else []
    return [*when, *phrase(clause.subject), *_others(clause), *objects, *where, *how, *verb(clause)]


def object_first(clause: Clause, where: list[str], when: list[str], agent: bool = True) -> list[str]:
    """What English says in the passive; without an agent the verb is impersonal."""
    subject = phrase(clause.subject) if agent else []
    middle = [*subject, *_others(clause), *where]
    return [*when, *phrase(clause.patient, "object"), *middle, *verb(clause, impersonal=not agent)]


def polar(clause: Clause, where: list[str]) -> list[str]:
    """A question: the verb with its particle in front."""
    objects = phrase(clause.object, "object") if clause.object else []
    return [*verb(clause), QUESTION, *phrase(clause.subject), *_others(clause), *objects, *where, "?"]


def ask(clause: Clause, asked: str) -> list[str]:
    """Who did it ("subject"), or to what or whom ("object")? The asked word stands first, the verb last."""
    if asked == "subject":
        return [WHO, *_others(clause), *phrase(clause.patient, "object"), *verb(clause, plural=False), "?"]
    word = WHO if clause.patient.noun.kind in ("person", "name") else WHAT
    # indefinite: without object
    asking = Clause(clause.verb, clause.subject, tense=clause.tense, negated=clause.negated)
    return [word + "an", *phrase(clause.subject), *_others(clause), *verb(asking), "?"]


def participle(inner: Clause) -> list[str]:
    """ "who helped the boy" before its noun: the object and a participle."""
    base = stem("verb", inner.verb)
    objects = phrase(inner.object, "object") if inner.object else []
    return [*objects, base + PARTICIPLE[is_front(base)]]


def render(words: list[str]) -> str:
    """Text: no capitals, a full stop unless there is a mark."""
    tokens = words if words[-1] in ".?" else [*words, "."]
    return " ".join(tokens[:-1]) + tokens[-1]


@cache
def pieces() -> tuple[str, ...]:
    """All stems and small words, then all endings ("##..."), sorted: what a tokenizer needs to see Velic's grammar."""
    small = {
        *MODALS.values(),
        *DEMONSTRATIVES.values(),
        *BEFORE_NOUN.values(),
        *AFTER_NOUN.values(),
        QUESTION,
        AND,
        WHO,
        WHAT,
        WHO + "an",
        WHAT + "an",
    }
    small |= {marker for marker in NAME_MARKERS.values() if marker}
    bases = {"nak", "nek"}
    endings = {
        noun_form(b, p, c, d)[3:]
        for b in bases
        for p in (True, False)
        for c in CASES
        for d in ("a", "the", *POSSESSIVE)
    }
    endings |= {
        finite(b, t, p, negated=n, definite=d)[3:]
        for b in bases for t in TENSE for p in (True, False) for n in (True, False) for d in (True, False)
    }  # fmt: skip
    for front in (True, False):
        endings |= {INFINITIVE[front], PARTICIPLE[front]}
        endings |= {negation + TENSE[t][front] + IMPERSONAL[front] for t in TENSE for negation in ("", NEGATION[front])}
    return (*sorted({*stems().values(), *small}), *(f"##{ending}" for ending in sorted(endings - {""})))
