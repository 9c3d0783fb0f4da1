"""The corpus demo/everyday: what ships is what is written, pairs are what their labels say, and counting words separates little."""

from __future__ import annotations

from collections import Counter

from factory import everyday, rows


def test_the_factory_makes_the_pairs_and_the_card_that_ship() -> None:
    assert rows.shipped(everyday.SLUG) == everyday.generate()
    assert everyday.CARD.read_text(encoding="utf-8") == everyday.card()
    assert everyday.digest() == "ee5aad85570d68470d582ffa9261ff0e", "the recorded encoders read these texts"


def test_related_pairs_are_those_written_and_unrelated_ones_are_of_two_topics() -> None:
    written = {frozenset(pair): domain for domain, pairs in everyday.written().items() for pair in pairs}
    domain_of = {text: domain for pair, domain in written.items() for text in pair}
    made = everyday.generate()["pairs"]
    kinds = Counter(row["kind"] for row in made)
    assert kinds == {everyday.RELATED: 240, everyday.SAME: 120, everyday.OTHER: 120}
    assert set(Counter(written.values()).values()) == {20}
    for row in made:
        first, second = row["sentence1"], row["sentence2"]
        assert (frozenset((first, second)) in written) == (row["label"] == 1) == (row["kind"] == everyday.RELATED)
        assert row["domain"] == domain_of[first]
        assert (domain_of[first] == domain_of[second]) == (row["kind"] != everyday.OTHER)
