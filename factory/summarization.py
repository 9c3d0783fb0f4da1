"""Short stories with their gist, by phenomenon. The gist has to be worked out: no sentence of the story says it.

A thing passes through several hands (from whom to whom in all?), somebody tries something (with whose help, and did it
work?), several people give an opinion (did most of them like it?). Voice, pronouns and sentences beside the point come
between.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from factory import sentiment
from factory.grammar import NP, Clause, Sampler, by_name, say
from factory.lexicon import Verb, words

Story = tuple[list[list[str]], list[str]]
Builder = Callable[[Sampler, int], Story]
VARIANTS = 4  # how a story may end; the two that only have two ends use the parity
GIVING = words("give hand send lend loan sell pass bring")
GETTING = ("buy", "purchase", "borrow", "receive")
SETTINGS = (
    "it was a cold day", "it was late", "the street was quiet", "it was a strange day", "nobody was surprised",
    "the village was quiet", "it was dark outside", "the day was long", "people talked about it for days",
)  # fmt: skip


def people(s: Sampler, count: int) -> list[NP]:
    """Different persons, most of them with "the", some by name."""
    return s.several(lambda: s.np("person", False, 0.15, det="the") if s.chance(0.75) else NP(s.name(), det=""), count)


def again(np: NP) -> NP:
    """The same one mentioned again: without the adjective."""
    return NP(np.noun, np.plural, np.det)


def thing(s: Sampler, other: NP | None = None) -> NP:
    np = s.np(s.choose(("object", "object", "clothing", "text", "vehicle")), False, 0.2, det="the")
    while other is not None and np.noun.group[0] == other.noun.group[0]:
        np = s.np(s.choose(("object", "clothing", "text")), False, 0.2, det="the")
    return np


def it(np: NP) -> NP:
    """The pronoun as a noun phrase."""
    return NP(np.noun, False, "it")


def _transfer(s: Sampler, giver: NP, taker: NP, what: NP) -> list[str]:
    """The thing goes from giver to taker, told from either side."""
    pronoun = what.det == "it"
    draw = s.rng.random()
    if draw < 0.4:
        verb = s.choose([v for v in s.lexicon.dative if v.lemma in GIVING and s.allowed(v)])
        if pronoun:
            return [*giver.words, verb.past, "it", "to", *taker.words]
        return Clause(verb, giver, what, taker, tense="past").active(s.choose(("double", "to")))
    if draw < 0.75:
        verb = s.choose([get for get, _ in s.lexicon.converse if get.lemma in GETTING and s.allowed(get)])
        return [*taker.words, verb.past, *(["it"] if pronoun else what.words), "from", *giver.words]
    verb = s.choose([v for v in s.lexicon.dative if v.lemma in GIVING and s.allowed(v)])
    subject = ["it"] if pronoun else what.words
    return [*subject, "was", verb.participle, "to", *taker.words, "by", *giver.words]


def _place(s: Sampler) -> tuple[str, ...]:
    return (s.choose(("in", "near", "outside")), *s.np("place", False, 0.1, det="the").words)


def _aside(s: Sampler, cast: list[NP]) -> list[str]:
    """A sentence beside the point."""
    draw = s.rng.random()
    if draw < 0.3:
        return s.choose(SETTINGS).split()
    who = again(s.choose(cast))
    if draw < 0.6:
        return Clause(s.verb(s.lexicon.intransitive["person"]), who, tense="past", place=_place(s)).active()
    if draw < 0.8:
        return [*who.words, "was", s.adjective("person").lemma]
    return [*_place(s), *who.words, s.verb(s.verbs_for("person", "animal")).past, *s.np("animal").words]


def a_thing_changes_hands(s: Sampler, variant: int) -> Story:
    """A thing passes through three or four hands; another thing changes hands as well."""
    cast = people(s, 4)
    owners = cast[: 3 + variant % 2]
    what = thing(s)
    other = thing(s, what)
    start, plain = owners[0], again(what)
    indefinite = NP(what.noun, False, "a", what.adjectives)
    had, found = say("{} had {}", start, indefinite), say("{} found {} {}", start, indefinite, _place(s))
    opening = s.choose((had, found, say("{} belonged to {}", what, start)))
    sentences, fresh = [opening], True
    decoy = s.rng.randrange(1, len(owners))
    for number, (giver, taker) in enumerate(pairwise(owners), start=1):
        if number == decoy:
            pair = s.rng.sample(cast, 2)
            sentences.append(_transfer(s, again(pair[0]), again(pair[1]), NP(other.noun, False, "a", other.adjectives)))
            fresh = False
        elif s.chance(0.3):
            sentences.append(_aside(s, cast))
            fresh = False
        link = s.choose(("then", "later", "after that ,", "one day", "", "")).split()
        given = it(what) if fresh and s.chance(0.6) else plain
        sentences.append([*link, *_transfer(s, again(giver), again(taker), given)])
        fresh = True
    if s.chance(0.4):
        sentences.append(_aside(s, cast))
    return sentences, [*plain.words, "went", "from", *again(owners[0]).words, "to", *again(owners[-1]).words]


def an_attempt(s: Sampler, variant: int) -> Story:
    """Somebody wants to do something; what it looked like at first is not how it ended."""
    success = variant % 2 == 0
    cast = people(s, 3)
    hero, helper, third = cast
    kind = s.choose(("object", "object", "place", "vehicle", "text", "animal"))
    goal = s.np(kind, False, 0.2, det="the")
    verb: Verb = s.verb(s.verbs_for("person", kind))
    while verb.lemma in s.lexicon.stative:  # nobody tries to own or to like something
        verb = s.verb(s.verbs_for("person", kind))
    doing = [verb.lemma, *goal.words]
    briefly = [verb.lemma, *again(goal).words]
    hope = s.choose(("wanted to", "hoped to", "planned to", "promised to"))
    sentences = [[*hero.words, *hope.split(), *doing]]
    doubters = s.choose((["everyone"], ["everybody"], [*again(third).words]))
    hero2, helper2 = again(hero), again(helper)
    misleading = [
        say("{} thought that {} would {}", doubters, hero2, "fail" if success else "succeed"),
        say("at first {} {} {}", hero2, "failed to" if success else "almost managed to", briefly),
        say("{} said that it would {} work", doubters, "never" if success else ""),
    ]
    sentences.append(s.choose(misleading))
    helped = s.chance(0.5)
    asked = say("{} asked {} for help ,", hero2, helper2)
    if helped:
        aid = (
            say("{} helped {}", helper2, hero2),
            say("{} was helped by {}", hero2, helper2),
            say("{} and {} agreed", asked, helper2),
        )
    else:
        aid = (
            say("{} did not help {}", helper2, hero2),
            say("nobody helped {}", hero2),
            say("{} but {} refused", asked, helper2),
        )
    sentences.append(s.choose(aid))
    if s.chance(0.5):
        sentences.insert(s.rng.randrange(1, len(sentences) + 1), _aside(s, [third]))
    if success:
        ends = (
            "in the end {} managed to {}",
            "in the end {} did not fail",
            "finally it worked",
            "but {} tried again and succeeded",
        )
        gist = say("{} {} {}", hero2, verb.past, again(goal))
    else:
        ends = (
            "in the end {} failed to {}",
            "in the end {} did not succeed",
            "but it never worked",
            "but {} tried again and failed",
        )
        gist = say("{} did not {}", hero2, briefly)
    sentences.append(say(s.choose(ends), hero2, briefly))
    if helped:
        gist = say("{} {} the help of {}", gist, "with" if success else "in spite of", helper2)
    return sentences, say("{} without help", gist) if success and not helped else gist


def opinions(s: Sampler, variant: int) -> Story:
    """Three people judge the same thing; the gist counts them: 3, 2, 1 or 0 liked it."""
    about = sentiment.target(s, s.choose(("work", "place", "product")), det="the")
    about = sentiment.Target(about.kind, NP(about.phrase.noun, False, "the"))
    cast = [again(np) for np in people(s, 3)]
    first = {"work": "watched", "place": "visited", "product": "tested"}[about.kind]
    judges = say("{} , {} and {}", *cast)
    opening = s.choose(
        (say("{} {} {}", judges, first, about.phrase), say("{} was {} by {}", about.phrase, first, judges))
    )
    likes = [True] * (3 - variant) + [False] * variant
    s.rng.shuffle(likes)
    order = list(zip(cast, likes, strict=True))
    s.rng.shuffle(order)
    sentences = [opening, *(_judges(s, about, who, liked) for who, liked in order)]
    if s.chance(0.4):
        sentences.insert(s.rng.randrange(1, 5), _aside(s, cast))
    who = ("all of them liked", "most of them liked", "most of them disliked", "all of them disliked")[variant]
    return sentences, [*who.split(), *about.words]


def _judges(s: Sampler, about: sentiment.Target, who: NP, liked: bool) -> list[str]:
    draw = s.rng.random()
    if draw < 0.35:
        return say(
            "{} {} it", who, sentiment.past(s.choose(sentiment.POSITIVE_VERBS if liked else sentiment.NEGATIVE_VERBS))
        )
    if draw < 0.55:
        return say("{} did not {} it", who, s.choose(sentiment.NEGATIVE_VERBS if liked else sentiment.POSITIVE_VERBS))
    if draw < 0.8:
        return say("{} said that it was {}", who, sentiment.strong(s, about.kind, liked))
    return say("{} thought it was {}", who, sentiment.not_quality(s, about.kind, liked))


PHENOMENA = by_name(a_thing_changes_hands, an_attempt, opinions)
