"""Opinions about works, places, gadgets and people, positive or negative, by phenomenon.

The words alone do not decide: negation turns them round, and in contrast the main clause (or what follows "but")
counts. Every builder uses adjectives of both polarities for both labels where it can.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from factory.grammar import NP, Sampler, be, by_name, say
from factory.lexicon import Noun, article, regular_past, words

POSITIVE_VERBS = words("love adore enjoy praise commend recommend admire endorse appreciate like")
NEGATIVE_VERBS = words("hate detest criticise censure dread despise condemn dislike resent")
POSITIVE_EFFECTS = words(
    "amuse entertain please delight inspire fascinate captivate impress intrigue comfort encourage charm enchant"
)
NEGATIVE_EFFECTS = words("bore annoy irritate disappoint offend weary disgust frustrate bother anger confuse")
ADJECTIVES = {"work": "work", "place": "place", "product": "thing", "person": "person"}
ASPECTS = {"work": "aspect_work", "place": "aspect_place", "product": "aspect_thing"}
PLACES = words(
    "restaurant bistro cafe hotel inn shop store bakery cinema theatre museum gallery gym market bazaar pool park beach village "
    "cottage cabin supermarket library hospital clinic studio pharmacy"
)
OBJECTS = {"i": "me", "we": "us", "they": "them"}
NOT = words(
    "not|not|not very|not at all|never|hardly|far from|anything but|not particularly|by no means|not really", "|"
)


ABOVE = words(
    "i do not think|nobody said|no one believes|we did not find|it is not true|i would not say|few people thought", "|"
)


def past(verb: str) -> str:
    """All verbs of opinion are regular."""
    return regular_past(verb, double=False)


@dataclass(frozen=True)
class Target:
    """What an opinion is about, with its class."""

    kind: str
    phrase: NP

    @property
    def words(self) -> list[str]:
        return self.phrase.words

    def was(self, tense: str = "past") -> str:
        return be(tense, self.phrase.plural)


def target(s: Sampler, kind: str | None = None, det: str | None = None) -> Target:
    kind = kind or s.choose(("work", "work", "work", "place", "place", "product", "person"))
    noun = s.noun(kind)
    while kind == "place" and noun.lemma not in PLACES:
        noun = s.noun(kind)
    plural = s.chance(0.12)
    determiner = det or s.choose(("the", "the", "the", "this", "that", "our", "my"))
    return Target(
        kind, NP(noun, plural, {"this": "these", "that": "those"}.get(determiner, determiner) if plural else determiner)
    )


def aspect(s: Sampler, about: Target) -> NP:
    """A part of what the opinion is about: the plot, the menu, the screen."""
    noun: Noun = s.noun(ASPECTS[about.kind])
    return NP(noun, s.chance(0.12), s.choose(("the", "the", "its")))


def quality(s: Sampler, kind: str, positive: bool) -> str:
    """A bare adjective of the polarity that suits the class."""
    sign = "positive" if positive else "negative"
    group = s.choose((ADJECTIVES[kind], ADJECTIVES[kind], "general"))
    return s.word(s.lexicon.polarity[f"{group}_{sign}"]).lemma


def strong(s: Sampler, kind: str, positive: bool, rate: float = 0.4) -> list[str]:
    """The adjective, often intensified: "really dull"."""
    front = [s.word(s.lexicon.adverbs["intensifier"]).lemma] if s.chance(rate) else []
    return [*front, quality(s, kind, positive)]


def not_quality(s: Sampler, kind: str, positive: bool) -> list[str]:
    """The same judgement from an adjective of the other polarity, negated."""
    return say("{} {}", s.choose(NOT), quality(s, kind, not positive))


def judgement(s: Sampler, kind: str, positive: bool, negated: float = 0.35) -> list[str]:
    return not_quality(s, kind, positive) if s.chance(negated) else strong(s, kind, positive)


def audience(s: Sampler) -> list[str]:
    """Who judges."""
    draw = s.rng.random()
    if draw < 0.35:
        return [s.choose(("i", "we", "they"))]
    if draw < 0.6:
        return s.choose(("the critics", "most people", "the guests", "many visitors", "the reviewers")).split()
    phrase = s.np("person", adjective=0.1, det=s.choose(("the", "the", "my", "our", "a")))
    return (replace(phrase, det="the") if phrase.plural and phrase.det == "a" else phrase).words


def as_object(who: list[str]) -> list[str]:
    """The audience in the object's place: "me" for "i"."""
    return [OBJECTS[who[0]]] if who[0] in OBJECTS else who


def plain_opinion(s: Sampler, positive: bool) -> list[str]:
    about = target(s)
    draw = s.rng.random()
    if draw < 0.5:
        return say("{} {} {}", about.phrase, about.was(s.choose(("past", "present"))), strong(s, about.kind, positive))
    if draw < 0.75:
        adjective = quality(s, about.kind, positive)
        opinion = say("{} {} {}", article(adjective), adjective, about.phrase.noun.lemma)
        intro = s.choose(("it was", "this is", "what", "we expected and got", "it turned out to be"))
        return say("{} {} {}", intro, opinion, "!" if intro == "what" else "")
    if about.kind == "person":
        return say("{} seemed {}", about.phrase, strong(s, "person", positive))
    part = replace(aspect(s, about), det="the")
    return say("{} of {} {} {}", part, about.phrase, be("past", part.plural), strong(s, about.kind, positive))


def opinion_verb(s: Sampler, positive: bool) -> list[str]:
    about = target(s)
    who = audience(s)
    if s.chance(0.5):
        return say("{} {} {}", who, past(s.choose(POSITIVE_VERBS if positive else NEGATIVE_VERBS)), about.phrase)
    verb = s.choose(POSITIVE_EFFECTS if positive else NEGATIVE_EFFECTS)
    return say("{} {} {}", about.phrase, past(verb), as_object(who))


def negation(s: Sampler, positive: bool) -> list[str]:
    about = target(s)
    return say("{} {} {}", about.phrase, about.was(s.choose(("past", "present"))), not_quality(s, about.kind, positive))


def negated_verb(s: Sampler, positive: bool) -> list[str]:
    about = target(s)
    who = audience(s)
    verb = s.choose(NEGATIVE_VERBS if positive else POSITIVE_VERBS)
    draw = s.rng.random()
    if draw < 0.4:
        return say("{} {} {} {}", who, s.choose(("did not", "could not")), verb, about.phrase)
    if draw < 0.6:
        return say("{} {} {}", s.choose(("nobody", "no one")), past(verb), about.phrase)
    effect = s.choose(NEGATIVE_EFFECTS if positive else POSITIVE_EFFECTS)
    return say("{} {} not {} {}", about.phrase, s.choose(("did", "could")), effect, as_object(who))


def negation_in_the_clause_above(s: Sampler, positive: bool) -> list[str]:
    """I do not think that the film was dull: the negation stands in the clause above."""
    about = target(s)
    above = s.choose(ABOVE)
    inner = strong(s, about.kind, not positive)
    if above.endswith("find"):
        return say("{} {} {}", above, about.phrase, inner)
    return say("{} that {} {} {}", above, about.phrase, about.was(), inner)


def _sides(s: Sampler, positive: bool, negated: float = 0.3) -> tuple[list[str], list[str]]:
    """Two clauses about the same thing, of opposite polarity: the concession and the verdict."""
    about = target(s, s.choose(("work", "work", "place", "product")))
    part = aspect(s, about)
    conceded = say("{} {} {}", part, be("past", part.plural), judgement(s, about.kind, not positive, negated))
    verdict = say("{} {} {}", about.phrase, about.was(), judgement(s, about.kind, positive, negated))
    if s.chance(0.3):
        second = aspect(s, about)
        who = audience(s)
        verb = past(s.choose(POSITIVE_VERBS if positive else NEGATIVE_VERBS))
        verdict = say("{} {} {}", who, verb, about.phrase)
        judged = judgement(s, about.kind, not positive, negated)
        conceded = say("{} {} {}", second, be("past", second.plural), judged)
    return conceded, verdict


def contrast_with_but(s: Sampler, positive: bool) -> list[str]:
    weak, verdict = _sides(s, positive)
    return say("{} , {} {}", weak, s.choose(("but", "but", "yet", "but in the end", "but still")), verdict)


def concession(s: Sampler, positive: bool) -> list[str]:
    """Although ..., ...: the main clause decides, wherever it stands."""
    weak, verdict = _sides(s, positive)
    link = s.choose(("although", "though", "even though", "while"))
    return say("{} {} , {}", link, weak, verdict) if s.chance(0.5) else say("{} , {} {}", verdict, link, weak)


def despite(s: Sampler, positive: bool) -> list[str]:
    about = target(s, s.choose(("work", "work", "place", "product")))
    noun, plural = s.noun(ASPECTS[about.kind]), s.chance(0.15)
    part = NP(noun, plural, s.choose(("the", "its")), (quality(s, about.kind, not positive),))
    verdict = say("{} {} {}", about.phrase, about.was(), judgement(s, about.kind, positive))
    link = s.choose(("despite", "in spite of", "regardless of"))
    return say("{} {} , {}", link, part, verdict) if s.chance(0.5) else say("{} {} {}", verdict, link, part)


def verdict_noun(s: Sampler, positive: bool) -> list[str]:
    """A triumph, a disaster; or not."""
    about = target(s, s.choose(("work", "place", "product")))
    negated = s.chance(0.5)
    sign = "positive" if positive != negated else "negative"
    noun = s.word(s.lexicon.polarity[f"verdict_{sign}"]).lemma
    a = article(noun)
    fronts = (
        (f"not {a}", f"hardly {a}", f"anything but {a}", f"by no means {a}") if negated else (a, "a complete", "a real")
    )
    return say("{} {} {} {}", about.phrase, about.was(), s.choose(fronts), noun)


def unfulfilled_expectation(s: Sampler, positive: bool) -> list[str]:
    """What was expected, hoped or possible did not come true: the words point the wrong way."""
    about = target(s, s.choose(("work", "work", "place", "product")))
    seeming = strong(s, about.kind, not positive, 0.3)
    draw = s.rng.random()
    who = s.choose(
        ("we", "i", "the critics", "everyone", *([s.np("person", adjective=0).words] if s.chance(0.5) else ()))
    )
    if draw < 0.35:
        denial = s.choose(("it was not", "that did not happen", "it never was"))
        return say("{} could have been {} , but {}", about.phrase, seeming, denial)
    if draw < 0.7:
        expected, that = s.choose(("expected", "imagined", "predicted")), s.choose(("that", ""))
        wrong = "was wrong" if who in ("i", "everyone") else "were wrong"
        return say("{} {} {} {} would be {} , but {} {}", who, expected, that, about.phrase, seeming, who, wrong)
    looked = s.choose(("looked", "seemed", "sounded"))
    denial = s.choose(("that changed", "the opposite was true", "it was not"))
    return say("{} {} {} at first , but {}", about.phrase, looked, seeming, denial)


def comparison(s: Sampler, positive: bool) -> list[str]:
    """The first of the two is judged."""
    kind = s.choose(("work", "place", "product"))
    first, second = target(s, kind, "this"), target(s, kind, "the")
    adjective = s.word(s.lexicon.polarity[f"{ADJECTIVES[kind]}_{'positive' if s.chance(0.5) else 'negative'}"])
    good_word = adjective in s.lexicon.polarity[f"{ADJECTIVES[kind]}_positive"]
    more = say(
        "{} {} {}", s.choose(("far", "much", "even")), "more" if good_word == positive else "less", adjective.lemma
    )
    return say("{} {} {} than any other {}", first.phrase, first.was(), more, second.phrase.noun.lemma)


PHENOMENA = by_name(
    plain_opinion,
    opinion_verb,
    negation,
    negated_verb,
    negation_in_the_clause_above,
    contrast_with_but,
    concession,
    despite,
    verdict_noun,
    unfulfilled_expectation,
    comparison,
)
