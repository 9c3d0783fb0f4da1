"""How the rows of the demo tasks are made: balanced, deterministic, with words in validation that training rows never show.

generate("demo/sentiment")["train"][0]  ->  {"sentence": "...", "label": 1, "phenomenon": "..."}

What each task is (its kind, columns and labels) says `isoviz.tasks.demo`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from factory import (
    acceptability,
    entailment,
    paraphrase,
    qa,
    retrieval,
    sentiment,
    sentiment5,
    similarity,
    summarization,
    translation,
    velic,
)
from factory.grammar import Sampler, render
from factory.lexicon import core_lexicon

Row = dict[str, Any]
Maker = Callable[[Sampler, int], Row]


@dataclass(frozen=True)
class Generator:
    """How a task's rows are made.

    Attributes:
        makers: phenomenon → what makes a row of it; each row names its phenomenon.
        train_rows, validation_rows: rows per split.
        distinct: the columns whose texts never repeat, neither in a split nor between them.
        variants: how many kinds of row each phenomenon makes in turn (the labels, for classification).
        quantifiers: whether noun phrases may be quantified.
        core_words: only words that the task's second language has.
    """

    makers: Mapping[str, Maker]
    train_rows: int
    validation_rows: int
    distinct: tuple[str, ...]
    variants: int = 2
    quantifiers: bool = True
    core_words: bool = False

    @property
    def phenomena(self) -> tuple[str, ...]:
        return tuple(self.makers)


def _words(built: Any) -> tuple[str, ...]:
    return (render(built),) if isinstance(built, list) else tuple(render(words) for words in built)


def _labelled(builder: Callable[[Sampler, Any], Any], columns: tuple[str, ...], binary: bool = False) -> Maker:
    """A builder of texts for a label as a maker of rows."""

    def make(s: Sampler, label: int) -> Row:
        texts = _words(builder(s, bool(label) if binary else label))
        return {**dict(zip(columns, texts, strict=True)), "label": label}

    return make


def _scored(builder: similarity.Builder) -> Maker:
    def make(s: Sampler, number: int) -> Row:
        first, second, score = builder(s, number)
        return {"sentence1": render(first), "sentence2": render(second), "label": float(score)}

    return make


def _answered(builder: qa.Builder) -> Maker:
    return lambda s, _: qa.row(builder(s))


def _searched(builder: Callable[[Sampler, int], tuple[str, str, str]]) -> Maker:
    return lambda s, number: dict(zip(_SEARCH, builder(s, number), strict=True))


def _translated(builder: translation.Builder) -> Maker:
    def make(s: Sampler, _: int) -> Row:
        english, said = builder(s)
        return {"source": render(english), "target": velic.render(said)}

    return make


def _summarized(builder: summarization.Builder) -> Maker:
    def make(s: Sampler, variant: int) -> Row:
        sentences, gist = builder(s, variant)
        return {"source": " ".join(render(words) for words in sentences), "target": render(gist)}

    return make


_ONE = ("sentence",)
_TWO = ("sentence1", "sentence2")
_SEQUENCES = ("source", "target")
_SEARCH = ("query", "document", "negative")
_NLI = ("premise", "hypothesis")


def _task(module: Any, maker: Callable[[Any], Maker], *sizes: Any, **more: Any) -> Generator:
    """A generator of all phenomena of a module. sizes: rows of training and validation, and the distinct columns."""
    return Generator({name: maker(builder) for name, builder in module.PHENOMENA.items()}, *sizes, **more)


def _of(columns: tuple[str, ...], binary: bool = False) -> Callable[[Any], Maker]:
    return lambda builder: _labelled(builder, columns, binary)


_GENERATORS = {
    "demo/acceptability": _task(acceptability, _of(_ONE, True), 3000, 500, _ONE),
    "demo/sentiment": _task(sentiment, _of(_ONE, True), 2000, 500, _ONE),
    "demo/sentiment5": _task(sentiment5, _of(_ONE), 3000, 990, _ONE, variants=5),
    "demo/paraphrase": _task(paraphrase, _of(_TWO, True), 4000, 500, _TWO, quantifiers=False),
    "demo/entailment": _task(entailment, _of(_NLI), 3996, 999, _NLI, variants=3, quantifiers=False),
    "demo/similarity": _task(similarity, _scored, 3996, 990, _TWO, variants=similarity.BINS, quantifiers=False),
    "demo/qa": _task(qa, _answered, 3600, 996, ("context",), variants=1, quantifiers=False),
    "demo/translation": _task(translation, _translated, 4000, 500, _SEQUENCES, variants=1, core_words=True),
    "demo/summarization": _task(summarization, _summarized, 3000, 500, ("source",), variants=summarization.VARIANTS),
    "demo/search": _task(retrieval, _searched, 1200, 501, _SEARCH, variants=1, quantifiers=False),
}
SLUGS = tuple(_GENERATORS)


def generator(slug: str) -> Generator:
    """How the rows of a demo task are made; ValueError for an unknown slug."""
    if slug not in _GENERATORS:
        raise ValueError(f"unknown demo task {slug!r}; there are {', '.join(SLUGS)}")
    return _GENERATORS[slug]


def _rows(maker: Generator, count: int, samplers: list[Sampler], rng: random.Random, taken: set[str]) -> list[Row]:
    """`count` rows over all phenomena in turn, as many of each variant, none whose text is in `taken` (which grows)."""
    names, variants = maker.phenomena, maker.variants
    rows: list[Row] = []
    for number in range(count):
        variant = number % variants
        name = names[(number // variants) % len(names)]
        sampler = samplers[(number // (variants * len(names))) % len(samplers)]
        row = maker.makers[name](sampler, variant)
        while any(row[column] in taken for column in maker.distinct):
            row = maker.makers[name](sampler, variant)
        taken.update(row[column] for column in maker.distinct)
        rows.append({**row, "phenomenon": name})
    rng.shuffle(rows)
    return rows


def generate(slug: str) -> dict[str, list[Row]]:
    """The rows of both splits. The same on every machine: all draws come from `random.Random` seeded with text.

    Every row has the columns that a file of the task has, and `phenomenon`. Labels are balanced in each split, phenomena to
    within a few rows. Every second validation row is drawn with a preference for the reserved words, which no training row
    contains.
    """
    maker = generator(slug)
    known = core_lexicon() if maker.core_words else None

    def sampler(name: str, words: str) -> Sampler:
        return Sampler(random.Random(f"{slug} {name}"), words, maker.quantifiers, known)

    taken: set[str] = set()
    order = random.Random(f"{slug} order")
    held_out, seen = sampler("validation held out", "held_out"), sampler("validation", "open")
    validation = _rows(maker, maker.validation_rows, [held_out, seen], order, taken)
    train = _rows(maker, maker.train_rows, [sampler("train", "open")], order, taken)
    if slug == "demo/qa":
        for name, rows in (("train", train), ("validation", validation)):
            for number, row in enumerate(rows):
                row["id"] = f"{name}-{number}"
    return {"train": train, "validation": validation}
