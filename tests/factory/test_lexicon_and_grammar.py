"""The grammar's own contracts; its word forms are tested by the rows that ship, which it makes to the byte."""

from __future__ import annotations

import random

from factory.grammar import NP, Clause, Sampler, render, say
from factory.lexicon import Noun, Verb, lexicon


def verb(lemma: str, past: str, participle: str) -> Verb:
    return Verb(lemma, (lemma,), past, participle)


def test_at_least_two_thousand_word_forms() -> None:
    forms = lexicon().word_forms()
    assert len(forms) >= 2000
    assert all(form.isalpha() and form.islower() for form in forms)


def test_no_noun_is_in_two_classes() -> None:
    lemmas = [noun.lemma for nouns in lexicon().nouns.values() for noun in nouns]
    assert len(lemmas) == len(set(lemmas))


def test_one_clause_phrased_in_many_ways() -> None:
    doctor = NP(Noun("doctor", ("doctor",), "person", "doctors"))
    apples = NP(Noun("apple", ("apple",), "food", "apples"), plural=True, det="two")
    clause = Clause(verb("eat", "ate", "eaten"), doctor, apples, tense="present")
    assert render(clause.active()) == "The doctor eats two apples."
    assert render(clause.passive()) == "Two apples are eaten by the doctor."
    assert render(clause.polar()) == "Does the doctor eat two apples?"
    assert render(clause.ask_object()) == "What does the doctor eat?"
    assert render(clause.cleft("object")) == "It was two apples that the doctor eats."
    assert render(say("{} {} {}", doctor, "does not", ["eat", "them"])) == "The doctor does not eat them."
    past = Clause(verb("eat", "ate", "eaten"), doctor, apples, tense="past", negated=True)
    assert render(past.active()) == "The doctor did not eat two apples."
    assert render(past.passive()) == "Two apples were not eaten by the doctor."
    perfect = Clause(verb("eat", "ate", "eaten"), doctor, apples, tense="perfect")
    assert render(perfect.passive()) == "Two apples have been eaten by the doctor."


def test_open_sampler_never_draws_reserved_words() -> None:
    sampler = Sampler(random.Random("test"), "open")
    items = lexicon().nouns["person"]
    drawn = {sampler.word(items).lemma for _ in range(2000)}
    assert drawn == {noun.lemma for noun in items if not noun.reserved}
    assert any(noun.reserved for noun in items)
