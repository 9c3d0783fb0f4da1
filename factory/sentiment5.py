"""Opinions in five degrees, from very negative to very positive, by phenomenon.

An intensifier says little by itself: it may stand with what is conceded, expected or said of something else, and "the
least dull of all" praises. A neutral sentence has words of both polarities, but so have the others.
"""

from __future__ import annotations

from factory import sentiment
from factory.grammar import NP, Sampler, be, by_name, say
from factory.lexicon import article

LABELS = ("very negative", "negative", "neutral", "positive", "very positive")
EXTREME = ("extremely", "exceedingly", "incredibly", "unbelievably", "absolutely", "utterly", "completely", "totally")
MILD = ("rather", "fairly", "quite")
LOVE, LIKE = ("love", "adore"), ("like", "enjoy", "appreciate")
HATE, DISLIKE = ("hate", "detest", "despise"), ("dislike", "criticise", "resent")


def level(label: int) -> int:
    """-2 (very negative) to 2 (very positive)."""
    return label - 2


def _of(s: Sampler, words: tuple[str, ...]) -> str:
    return s.choose([word for word in words if s.allowed(word)] or words)


def verdict(s: Sampler, kind: str, degree: int) -> list[str]:
    """What something was, to that degree."""
    positive = degree > 0
    one = sentiment.quality(s, kind, positive)
    if degree == 0:
        good, bad = sentiment.quality(s, kind, True), sentiment.quality(s, kind, False)
        first, second = (good, bad) if s.chance(0.5) else (bad, good)
        forms = ("neither {} nor {}", "sometimes {} and sometimes {}", "not {} , but not {} either")
        return say(s.choose(forms), first, second)
    if abs(degree) == 2:
        return [_of(s, EXTREME), one]
    other = sentiment.quality(s, kind, not positive)
    again = sentiment.quality(s, kind, not positive)
    mild, negated = [_of(s, MILD), one], sentiment.not_quality(s, kind, positive)
    neither = say("neither {} nor {}", other, again) if again != other else ["not", other]
    return s.choose(([one], [one], mild, negated, neither))


def _aside(s: Sampler, kind: str, positive: bool, value: int) -> list[str]:
    """A judgement that does not count; mostly extreme where the verdict, of that value, is not."""
    extreme = s.chance(0.3 if abs(value) == 2 else 0.75)
    return [*([_of(s, EXTREME)] if extreme else []), sentiment.quality(s, kind, positive)]


def _part(s: Sampler, about: sentiment.Target, judged: list[str]) -> list[str]:
    part = sentiment.aspect(s, about)
    return [*part.words, be("past", part.plural), *judged]


def _about(s: Sampler) -> sentiment.Target:
    return sentiment.target(s, s.choose(("work", "work", "place", "product")))


def _against(s: Sampler, degree: int) -> bool:
    """The polarity of what does not count: mostly the other one."""
    return s.chance(0.5) if degree == 0 else (degree < 0) == s.chance(0.75)


def degree(s: Sampler, label: int) -> list[str]:
    """The film was utterly dull; next to the utterly dull film, the book was witty."""
    about = sentiment.target(s)
    said = [*about.words, about.was(), *verdict(s, about.kind, level(label))]
    if s.chance(0.3):
        return said
    other = sentiment.target(s, about.kind, "the")
    while other.phrase.noun.group == about.phrase.noun.group:
        other = sentiment.target(s, about.kind, "the")
    beside = ["next", "to", "the", *_aside(s, about.kind, _against(s, level(label)), level(label)), other.phrase.head]
    return [*beside, ",", *said]


def contrast_with_but(s: Sampler, label: int) -> list[str]:
    """What follows "but" decides; two parts that differ are a draw."""
    about, value = _about(s), level(label)
    if value == 0:
        positive = s.chance(0.5)
        first = _part(s, about, _aside(s, about.kind, positive, value))
        return [*first, ",", "but", *_part(s, about, _aside(s, about.kind, not positive, value))]
    weak = _part(s, about, _aside(s, about.kind, value < 0, value))
    link = s.choose((["but"], ["yet"], ["but", "in", "the", "end"]))
    return [*weak, ",", *link, *about.words, about.was(), *verdict(s, about.kind, value)]


def concession(s: Sampler, label: int) -> list[str]:
    """The main clause decides, wherever it stands."""
    about, value = _about(s), level(label)
    weak = _part(s, about, _aside(s, about.kind, _against(s, value), value))
    said = [*about.words, about.was(), *verdict(s, about.kind, value)]
    link = s.choose(("although", "though", "while"))
    return [link, *weak, ",", *said] if s.chance(0.5) else [*said, ",", link, *weak]


def superlative(s: Sampler, label: int) -> list[str]:
    """The most, more than most, as ... as any other, less than most, the least: with adjectives of either polarity."""
    about = _about(s)
    noun, head = about.phrase.noun, about.phrase.noun.lemma
    subject = NP(noun, False, s.choose(("this", "that")))
    good = s.chance(0.5)
    adjective = sentiment.quality(s, about.kind, good)
    value = level(label) if good else -level(label)
    if value == 0:
        return say("{} was as {} as any other {}", subject, adjective, head)
    if abs(value) == 2:
        most = "most" if value > 0 else "least"
        return say("{} was the {} {} {} of all", s.choose((subject.words, ["it"])), most, adjective, head)
    return say("{} was {} {} than most {}", subject, "more" if value > 0 else "less", adjective, noun.plural)


def expectation(s: Sampler, label: int) -> list[str]:
    """What was expected does not count."""
    about, value = _about(s), level(label)
    expected = _aside(s, about.kind, _against(s, value), value)
    who, verb = s.choose(("we", "i", "everyone", "the critics")), s.choose(("expected", "predicted", "imagined"))
    noun = about.phrase.noun
    opening = say("{} {} {} {} {}", who, verb, article(expected[0]), expected, noun.lemma)
    return say("{} , but {} was {}", opening, NP(noun, False, "the"), verdict(s, about.kind, value))


def opinion_verb(s: Sampler, label: int) -> list[str]:
    """Loved or liked, by the one who speaks: what others think does not count."""
    about, value = _about(s), level(label)
    what, it = about.words, "them" if about.phrase.plural else "it"
    me = s.choose(("i", "we"))
    if s.chance(0.2):
        return [me, *_feels(s, value, what, it)]
    person = " ".join(s.np("person", adjective=0).words)
    others = s.choose(("the critics", "most people", "the guests", "the reviewers", person))
    theirs = s.choose([other for other in range(-2, 3) if other != value])
    if s.chance(0.5):
        return say("{} {} , but {} {}", others, _feels(s, theirs, what, it), me, _feels(s, value, [it], it))
    return say("{} {} , although {} {}", me, _feels(s, value, what, it), others, _feels(s, theirs, [it], it))


def _feels(s: Sampler, value: int, what: list[str], it: str) -> list[str]:
    """A verb of that strength with its object; the stronger one may be denied."""
    strong, weak = (LOVE, LIKE) if value > 0 else (HATE, DISLIKE)
    if value == 0:
        first, second = s.choose(((LIKE, DISLIKE), (DISLIKE, LIKE), (LOVE, HATE), (HATE, LOVE)))
        return say("neither {} nor {} {}", sentiment.past(s.choose(first)), sentiment.past(s.choose(second)), what)
    if abs(value) == 2:
        return [sentiment.past(s.choose(strong)), *what]
    plain = say("{} {}", sentiment.past(s.choose(weak)), what)
    less = say("did not {} {} but {} {}", s.choose(strong), what, sentiment.past(s.choose(weak)), it)
    return s.choose((plain, less, say("did not {} {}", "dislike" if value > 0 else s.choose(LIKE), what)))


PHENOMENA = by_name(degree, contrast_with_but, concession, superlative, expectation, opinion_verb)
