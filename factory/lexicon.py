"""The words of the demo grammar: lemmas from `lexicon.toml`, inflected here.

Every open-class word belongs to a class ("person", "place", ...) and to a group of words that mean the same in this
little world ("doctor", "physician"). About one word in five is *reserved*: the tasks never use it in training rows,
only in validation rows, while the pretraining text uses all words.
"""

from __future__ import annotations

import tomllib
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

VOWELS = "aeiou"
DATA = Path(__file__).with_name("lexicon.toml")


def is_reserved(lemma: str) -> bool:
    """Whether a word is excluded from the tasks' training rows (stable: uses a checksum, not Python's hash)."""
    return zlib.crc32(lemma.encode()) % 5 == 0


@dataclass(frozen=True)
class Word:
    """A word with its group of synonyms (the lemmas of the group, itself included)."""

    lemma: str
    group: tuple[str, ...]

    @property
    def reserved(self) -> bool:
        return is_reserved(self.lemma)


@dataclass(frozen=True)
class Noun(Word):
    kind: str
    plural: str
    gender: str = ""

    @property
    def mass(self) -> bool:
        return self.kind == "mass"

    @property
    def animate(self) -> bool:
        return self.kind in ("person", "animal", "name")


@dataclass(frozen=True)
class Verb(Word):
    past: str
    participle: str
    double: bool = False

    @property
    def third(self) -> str:
        return add_s(self.lemma)

    @property
    def gerund(self) -> str:
        stem = self.lemma
        if stem.endswith("ie"):
            return stem[:-2] + "ying"
        if stem.endswith("e") and not stem.endswith(("ee", "ye", "oe")):
            return stem[:-1] + "ing"
        return (stem + stem[-1] if self.double else stem) + "ing"


@dataclass(frozen=True)
class Adjective(Word):
    comparative: str  # "taller", or "more careful" in two words


def words(text: str, separator: str | None = None) -> tuple[str, ...]:
    """A list of words written as text."""
    return tuple(text.split(separator))


def add_s(word: str) -> str:
    """The plural of a noun or the third person of a verb."""
    if word.endswith(("s", "x", "z", "ch", "sh")) and not word.endswith("stomach"):
        return word + "es"
    if word.endswith("y") and word[-2] not in VOWELS:
        return word[:-1] + "ies"
    if word in ("potato", "tomato", "go", "do", "echo", "hero", "mango"):
        return word + "es"
    return word + "s"


def doubles_last(verb: str) -> bool:
    """One-syllable verbs in consonant-vowel-consonant double: stop, stopped. "qu" counts as a consonant."""
    stem = verb.replace("qu", "kw")
    vowels = sum(letter in VOWELS for letter in stem)
    return vowels == 1 and len(stem) > 2 and stem[-2] in VOWELS and stem[-1] not in VOWELS + "wxy"


def regular_past(verb: str, double: bool) -> str:
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in VOWELS:
        return verb[:-1] + "ied"
    return (verb + verb[-1] if double else verb) + "ed"


def article(word: str) -> str:
    """ "a" or "an" before the word."""
    if word in ("university", "uniform", "useful", "useless"):
        return "a"
    return "an" if word[0] in VOWELS or word.startswith("honest") else "a"


def _groups(text: str) -> list[list[list[str]]]:
    """Groups of synonyms, each a list of form lists: "car=auto/autos" -> [[["car"], ["auto", "autos"]]]."""
    return [[word.split("/") for word in group.split("=")] for group in text.split()]


def _verb(forms: list[str], group: tuple[str, ...]) -> Verb:
    lemma = forms[0].rstrip("+")
    double = forms[0].endswith("+") or doubles_last(lemma)
    past = forms[1] if len(forms) > 1 else regular_past(lemma, double)
    participle = forms[2] if len(forms) > 2 else past
    return Verb(lemma, group, past, participle, double)


def _verbs(text: str) -> list[Verb]:
    verbs = []
    for group in _groups(text):
        lemmas = tuple(forms[0].rstrip("+") for forms in group)
        verbs += [_verb(forms, lemmas) for forms in group]
    return verbs


def _pairs(text: str) -> list[tuple[list[str], list[str]]]:
    return [(a.split("/"), b.split("/")) for a, b in (pair.split(":") for pair in text.split())]


@dataclass(frozen=True)
class Frame:
    """A transitive verb with the classes of subject and object it goes with."""

    verb: Verb
    subjects: tuple[str, ...]
    objects: tuple[str, ...]


class Lexicon:
    """All words, by class."""

    def __init__(self, raw: dict[str, dict[str, str]]) -> None:
        self._between: dict[tuple[str, str], list[Verb]] = {}
        self.nouns: dict[str, list[Noun]] = {}
        for section, text in raw["nouns"].items():
            kind = "person" if section in ("female", "male") else section
            gender = section if section in ("female", "male") else ""
            for group in _groups(text):
                lemmas = tuple(forms[0] for forms in group)
                for forms in group:
                    plural = forms[1] if len(forms) > 1 else add_s(forms[0])
                    self.nouns.setdefault(kind, []).append(Noun(forms[0], lemmas, kind, plural, gender))
        self.names = [
            Noun(name, (name,), "name", "", gender) for gender, text in raw["names"].items() for name in text.split()
        ]
        self.transitive = [
            Frame(verb, *(tuple(side.strip().split("|")) for side in key.split(">")))
            for key, text in raw["transitive"].items()
            for verb in _verbs(text)
        ]
        self.intransitive = {
            kind: [v for key, text in raw["intransitive"].items() if kind in key.split("|") for v in _verbs(text)]
            for kind in self.nouns
        }
        self.dative = _verbs(raw["ditransitive"]["alternating"])
        self.to_only = _verbs(raw["ditransitive"]["prepositional"])
        self.converse = [(_verb(a, (a[0],)), _verb(b, (b[0],))) for a, b in _pairs(raw["ditransitive"]["converse"])]
        self.stative = frozenset(raw["stative"]["verbs"].split())
        self.clausal = _verbs(raw["clausal"]["verbs"])
        self.adjectives = {kind: self._adjectives(text) for kind, text in raw["adjectives"].items()}
        self.polarity = {kind: self._adjectives(text) for kind, text in raw["polarity"].items()}
        self.adverbs = {
            kind: [Word(forms[0], tuple(f[0] for f in group)) for group in _groups(text) for forms in group]
            for kind, text in raw["adverbs"].items()
        }
        self.opposites = {
            kind: [(Adjective(a[0], (a[0],), a[1]), Adjective(b[0], (b[0],), b[1])) for a, b in _pairs(text)]
            for kind, text in raw["antonyms"].items()
        }

    @staticmethod
    def _adjectives(text: str) -> list[Adjective]:
        return [
            Adjective(forms[0], tuple(f[0] for f in group), forms[1] if len(forms) > 1 else f"more {forms[0]}")
            for group in _groups(text)
            for forms in group
        ]

    @cached_property
    def frames(self) -> dict[str, list[Frame]]:
        """Transitive frames by the class of their subject."""
        kinds: dict[str, list[Frame]] = {}
        for frame in self.transitive:
            for kind in frame.subjects:
                kinds.setdefault(kind, []).append(frame)
        return kinds

    def verbs_between(self, subject: str, obj: str) -> list[Verb]:
        """The transitive verbs of the frames from one class to the other (the same list object at every call)."""
        if (subject, obj) not in self._between:
            self._between[subject, obj] = [f.verb for f in self.frames[subject] if obj in f.objects]
        return self._between[subject, obj]

    def all_verbs(self) -> list[Verb]:
        verbs: Iterable[Verb] = (
            *(frame.verb for frame in self.transitive),
            *(verb for verbs in self.intransitive.values() for verb in verbs),
            *self.dative,
            *self.to_only,
            *(verb for pair in self.converse for verb in pair),
            *self.clausal,
        )
        return list(dict.fromkeys(verbs))

    def word_forms(self) -> list[str]:
        """Every distinct inflected form of the open classes, lower-cased and sorted."""
        forms: set[str] = set()
        for nouns in self.nouns.values():
            for noun in nouns:
                forms |= {noun.lemma} if noun.mass else {noun.lemma, noun.plural}
        forms |= {name.lemma.lower() for name in self.names}
        for verb in self.all_verbs():
            forms |= {verb.lemma, verb.third, verb.past, verb.participle, verb.gerund}
        for adjective in (a for group in (self.adjectives, self.polarity) for items in group.values() for a in items):
            forms |= {adjective.lemma, adjective.comparative.removeprefix("more ")}
        forms |= {word.lemma for words in self.adverbs.values() for word in words}
        return sorted(forms)


@cache
def lexicon() -> Lexicon:
    """The lexicon, read once."""
    return Lexicon(tomllib.loads(DATA.read_text(encoding="utf-8")))


# groups of synonyms that the core has of each class (the first ones); classes that are not named keep two
CORE = {
    "nouns": {"female": 8, "male": 8, "person": 30, "animal": 14, "object": 24, "vehicle": 7, "place": 16, "food": 10},
    "names": {"female": 12, "male": 12},
    "transitive": {"person > person|animal": 28, "person > object|clothing": 22, "person > food": 8, "person > vehicle": 6,
                   "person > place": 8, "animal > person|animal": 8},
    "intransitive": {"person": 20, "animal": 8},
    "ditransitive": {"alternating": 7},
    "adjectives": {"size": 5, "colour": 6, "object": 8, "person": 14, "place": 5, "food": 4},
    "adverbs": {"manner": 12, "frequency": 4, "past": 2, "future": 2, "present": 2},
}  # fmt: skip


@cache
def core_lexicon() -> Lexicon:
    """The commonest words only: those that the demo tasks' second language has."""
    raw = tomllib.loads(DATA.read_text(encoding="utf-8"))
    for section, sizes in CORE.items():
        for key in raw[section]:
            if key not in ("prepositional", "converse"):
                raw[section][key] = " ".join(raw[section][key].split()[: sizes.get(key, 2)])
    return Lexicon(raw)
