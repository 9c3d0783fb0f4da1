from __future__ import annotations

import random
import re
from itertools import pairwise

from factory import simple, tasks, translation, velic
from factory.grammar import NP, Clause, Sampler, render
from factory.lexicon import Noun, core_lexicon, lexicon


def noun(lemma: str) -> Noun:
    return next(n for nouns in core_lexicon().nouns.values() for n in nouns if n.lemma == lemma)


def clause(tense: str = "past", **changes: object) -> Clause:
    verb = next(v for v in core_lexicon().all_verbs() if v.lemma == "admire")
    return Clause(verb, NP(noun("teacher")), NP(noun("dog")), tense=tense, **changes)  # type: ignore[arg-type]


TEACHER, DOG = velic.stem("noun", noun("teacher")), velic.stem("noun", noun("dog"))
ADMIRE = velic.stem("verb", clause().verb)


def article(stem: str) -> str:
    return "e" if velic.is_front(stem) else "a"


def test_the_core_is_a_part_of_the_lexicon() -> None:
    assert set(core_lexicon().word_forms()) < set(lexicon().word_forms())


def test_synonyms_share_a_stem_and_no_stem_begins_another() -> None:
    assert velic.stem("noun", noun("doctor")) == velic.stem("noun", noun("physician"))
    stems = sorted(velic.stems().values())
    assert len(set(stems)) == len(stems) > 300
    assert not any(later.startswith(stem) for stem, later in pairwise(stems))


def test_object_and_verb_end_the_sentence() -> None:
    past = "ev" if velic.is_front(ADMIRE) else "ov"
    words = velic.statement(clause(), [], [], [])
    assert words == [TEACHER + article(TEACHER), DOG + article(DOG) + "n", ADMIRE + past + article(ADMIRE)]
    assert velic.object_first(clause(), [], [])[0] == words[1]


def test_vowels_of_endings_agree_with_the_stem() -> None:
    assert velic.noun_form("rebim", plural=True, case="object") == "rebimiken"
    assert velic.noun_form("barok", plural=True, case="object") == "barokukan"
    assert velic.noun_form("barok", plural=False, case="recipient", det="our") == "barokazal"


def test_negation_tense_definite_object_and_number_are_endings() -> None:
    assert velic.finite("barok", "past", plural=True, negated=True, definite=True) == "barokumovat"
    assert velic.finite("barok", "present", plural=False) == "barok"
    assert velic.finite("rebim", "future", plural=True) == "rebimilet"


def test_after_a_numeral_everything_is_singular() -> None:
    two = NP(noun("dog"), plural=True, det="two")
    many = NP(noun("dog"), plural=True, det="many")
    assert velic.phrase(two) == [velic.BEFORE_NOUN["two"], DOG]
    assert velic.phrase(many) == [velic.BEFORE_NOUN["many"], DOG + ("ik" if velic.is_front(DOG) else "uk")]


def test_adjectives_and_demonstratives_follow_and_agree() -> None:
    dogs = NP(noun("dog"), plural=True, det="those", adjectives=("small",))
    words = velic.phrase(dogs, "object")
    assert len(words) == 3 and words[0].startswith(DOG) and all(word[-1] == "n" for word in words)
    assert words[2].startswith(velic.DEMONSTRATIVES["those"])


def test_the_same_english_word_has_many_forms_and_the_same_form_many_orders() -> None:
    """Why word-by-word translation fails: a stem has many forms and positions, independent of the English."""
    stems = {velic.stem("noun", n): set() for n in core_lexicon().nouns["person"]}  # type: ignore[var-annotated]
    for row in tasks.generate("demo/translation")["train"]:
        for word in simple.words(row["target"]):
            if word[:6] in stems or word[:5] in stems:
                stems[word[:6] if word[:6] in stems else word[:5]].add(word)
    seen = [forms for forms in stems.values() if forms]
    assert sum(map(len, seen)) / len(seen) > 6


def test_english_is_grammatical_and_velic_is_not_english() -> None:
    sampler = Sampler(random.Random("test"), known=core_lexicon())
    english = set(lexicon().word_forms())
    names = {name.lemma.lower() for name in lexicon().names}
    for build in translation.PHENOMENA.values():
        for _ in range(50):
            source_text, meant = build(sampler)
            assert render(source_text)[0].isupper()
            text = velic.render(meant)
            assert text == text.lower() and text[-1] in ".?"
            assert not set(re.findall("[a-z]+", text)) & (english - names)


def test_ibm_model_1_finds_the_words_of_a_toy_corpus() -> None:
    pairs = (("a b", "x y"), ("a c", "x z"), ("b c", "y z"), ("b", "y"))
    rows = [{"source": source, "target": target} for source, target in pairs]
    assert simple.substituted(rows, [{"source": "c b a unknown"}]) == ["z y x"]
