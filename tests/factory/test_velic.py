"""Velic's own contracts; its endings and word order are tested by the rows that ship, which it makes to the byte."""

from __future__ import annotations

import random
import re
from itertools import pairwise

from factory import baselines, translation, velic
from factory.grammar import Sampler, render
from factory.lexicon import Noun, core_lexicon, lexicon


def noun(lemma: str) -> Noun:
    return next(n for nouns in core_lexicon().nouns.values() for n in nouns if n.lemma == lemma)


def test_synonyms_share_a_stem_and_no_stem_begins_another() -> None:
    assert velic.stem("noun", noun("doctor")) == velic.stem("noun", noun("physician"))
    stems = sorted(velic.stems().values())
    assert len(set(stems)) == len(stems) > 300
    assert not any(later.startswith(stem) for stem, later in pairwise(stems))


def test_negation_tense_definite_object_and_number_are_endings() -> None:
    assert velic.finite("barok", "past", plural=True, negated=True, definite=True) == "barokumovat"
    assert velic.finite("barok", "present", plural=False) == "barok"
    assert velic.finite("rebim", "future", plural=True) == "rebimilet"


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
    assert baselines.substituted(rows, [{"source": "c b a unknown"}]) == ["z y x"]
