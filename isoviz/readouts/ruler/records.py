"""What a ruler says, as records: one JSON document to take home."""

from __future__ import annotations

from typing import Final

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from isoviz.errors import InputError
from isoviz.formatting import fixed, sentence
from isoviz.metrics.directions import indistinct

Share = tuple[float, float, float]
WIDEST: Final = 0.2
"""Widest interval of the precision of a threshold that is recommended."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Level(_Record):
    """A quantile of unrelated pairs: this share of them lies below `cosine`; `low` and `high` are its 95 % interval, −1 or 1 where rows
    are too few to tell."""

    share: float
    cosine: float
    low: float
    high: float


class Threshold(_Record):
    """The lowest cosine above which the wanted share of pairs is related.

    Attributes:
        precision: of the pairs above it, the share that is related, with its 95 % interval.
        recall: of the related pairs, the share above it.
        recommended: the interval spans at most `WIDEST`.
        lost, avoided: of a search, the shares of right and of wrong best hits below it, each with its 95 % interval.
    """

    cosine: float
    precision: float
    low: float
    high: float
    recall: float
    recommended: bool
    lost: Share | None = None
    avoided: Share | None = None

    def unsupported(self, wanted: float, what: str) -> str:
        """Why it is not recommended; empty if it is."""
        width = f"its precision may be anything from {100 * self.low:.0f} to {100 * self.high:.0f} %"
        return f"These {what} cannot support a threshold for {100 * wanted:.3g} %: {width}." * (not self.recommended)


class Related(_Record):
    """What related pairs add.

    Attributes:
        pairs: how many.
        share: assumed share of related pairs among those that are compared; every probability depends on it.
        auc: probability that a related pair has a higher cosine than an unrelated one, with its 95 % interval.
        p: of a permutation test that related pairs have no higher cosines.
        separates: p is at most `ALPHA`.
        cosine, probability: the calibration curve, P(related | cosine), never falling.
        error: expected calibration error: mean distance of predicted from actual shares of new pairs, with its 95 % interval.
        threshold: for the wanted precision; None if no cosine reaches it or nothing separates the pairs.
        wanted: that precision.
        quantiles: of the related pairs' cosines, at the ruler's `percentile`.
        alignment: mean squared distance of related pairs on the unit sphere (Wang & Isola 2020), with its 95 % interval, which counts
            rows.
    """

    pairs: int
    share: float
    auc: tuple[float, float, float]
    p: float
    separates: bool
    cosine: list[float]
    probability: list[float]
    error: tuple[float, float, float]
    threshold: Threshold | None
    wanted: float
    alignment: tuple[float, float, float]
    quantiles: list[float] = Field(default_factory=list)

    @property
    def advice(self) -> str:
        """From which cosine on pairs are related."""
        found, few = self.threshold, f"{100 * self.share:.3g} %"
        if not self.separates:
            return f"No threshold separates these pairs (p = {self.p:.2g})."
        if found is None:
            return f"No cosine has a precision of {100 * self.wanted:.3g} %, if {few} of the pairs are related."
        return found.unsupported(self.wanted, f"{self.pairs:,} pairs") or (
            f"From {fixed(found.cosine, 3)} on, {_interval((found.precision, found.low, found.high))} of the pairs are related, if "
            f"{few} of all pairs are. That finds {100 * found.recall:.3g} % of the related pairs."
        )

    @property
    def certainty(self) -> str:
        """How well related pairs are separated, each number with its 95 % interval."""
        known = {
            "A related pair is higher than an unrelated one with probability": self.auc,
            "P(related) is off on average by": self.error if self.separates else None,
            "Alignment, the mean squared distance of related pairs, is": self.alignment,
        }
        said = [(what, *(fixed(one, 3) for one in value)) for what, value in known.items() if value]
        return " ".join("{} {} ({} to {}).".format(*one) for one in said)


class Hits(_Record):
    """Each query's best hit, the document with the highest cosine: the share that is `right`, P(right | cosine), and the threshold for
    the wanted precision, below which the answer is *not found*; all with 95 % intervals."""

    queries: int
    documents: int
    right: Share
    cosine: list[float]
    probability: list[float]
    low: list[float]
    high: list[float]
    wanted: float
    threshold: Threshold | None

    def read(self, cosine: float) -> Share:
        """P(a best hit with this cosine is relevant), with its 95 % interval."""
        value, low, high = (float(np.interp(cosine, self.cosine, y)) for y in (self.probability, self.low, self.high))
        return value, low, high

    @property
    def advice(self) -> str:
        """Whether best hits are right, from which cosine on to answer, and what that costs."""
        wanted, found = f"{100 * self.wanted:g} %", self.threshold
        right = f"Of {self.queries:,} queries, the best of {self.documents:,} documents is relevant for {_interval(self.right)}. "
        if found is None or not found.lost or not found.avoided:
            return f"{right}No cosine makes {wanted} of the best hits right."
        if not found.avoided[0]:
            return f"{right}No threshold is needed for {wanted}."
        return right + (
            found.unsupported(self.wanted, f"{self.queries:,} queries")
            or f"Below {fixed(found.cosine, 3)} answer *not found*: you lose {_interval(found.lost)} of the right answers and avoid "
            f"{_interval(found.avoided)} of the wrong ones; of those left, {_interval((found.precision, found.low, found.high))} are right."
        )


class Variant(_Record):
    """The same vectors after a transform that was fitted on other rows.

    Attributes:
        noise_floor: 99 % of unrelated pairs lie below.
        auc: as in `Related`, on the rows that judge.
        gain: AUC minus that of the untouched vectors, with its 95 % interval (paired).
    """

    name: str
    noise_floor: float
    auc: float | None
    gain: tuple[float, float, float] | None


class Reading(_Record):
    """A cosine on the ruler: the share of unrelated pairs below it, P(related) if pairs are known, and of a search P(a best hit with it
    is relevant), with its 95 % interval; all in words."""

    cosine: float
    percentile: float
    probability: float | None
    sentence: str
    best_hit: Share | None = None


class Ruler(_Record):
    """See `ruler`. `model_dump_json` is what to take home; `SIX_LINES` reads it.

    Attributes:
        n, d: rows and dimensions of the vectors.
        rows: of them, how many are in the pairs compared; `sampled`: they were drawn.
        compared: unrelated pairs.
        corpus: hash of the vectors.
        protocol: which pairs were compared, and how.
        cosine, percentile: the share of unrelated pairs below each cosine.
        relation: which pairs count as related, and what that assumes; None if no pairs are known.
        model: name of the encoder.
        cloud: how it made the vectors, by the names of `isoviz measure`: its fingerprint, layer, pooling, texts.
        hits: of a search, whether best hits are right.
    """

    n: int
    d: int
    rows: int
    compared: int
    sampled: bool
    corpus: str
    protocol: str
    floor: list[Level]
    cosine: list[float]
    percentile: list[float]
    related: Related | None
    variants: list[Variant]
    versions: dict[str, str]
    model: str | None = None
    relation: str | None = None
    cloud: dict[str, JsonValue] | None = None
    hits: Hits | None = None

    @property
    def alike(self) -> str:
        """Says that the rows cannot be told apart, by the mean cosine of unrelated pairs; empty if they can."""
        return sentence(indistinct(float(np.mean(self.cosine))))

    def read(self, cosine: float) -> Reading:
        """Where a cosine stands. Raises `InputError` if it is none."""
        check_cosine(cosine)
        percentile = float(np.interp(cosine, self.cosine, self.percentile))
        noise = next(level for level in self.floor if level.share == 0.99)
        place = f"{fixed(cosine, 3)} is above {_percent(percentile)} of unrelated pairs"
        if cosine > noise.high:
            place += f": above the noise floor of {fixed(noise.cosine, 3)}"
        elif cosine < noise.low:
            place += f": within the noise, whose floor is {fixed(noise.cosine, 3)}"
        else:
            place += f": at the noise floor, {fixed(noise.low, 3)} to {fixed(noise.high, 3)}"
        hit = None if self.hits is None else self.hits.read(cosine)
        if hit is not None:
            place += f". As a query's best hit it is relevant with probability {_interval(hit)}"
        probability = None
        if self.related is not None and not self.related.separates:
            place += ". No threshold separates these pairs"
        elif self.related is not None:
            probability = float(np.interp(cosine, self.related.cosine, self.related.probability))
            chance = f"this one is with probability {probability:.2f}"
            place += f"; if {100 * self.related.share:.3g} % of the pairs are related, {chance}"
        sentence = f"{place}."
        return Reading(cosine=cosine, percentile=percentile, probability=probability, sentence=sentence, best_hit=hit)


def check_cosine(cosine: float) -> None:
    """Raise `InputError` if a number is no cosine."""
    if not -1 - 1e-6 <= cosine <= 1 + 1e-6:
        raise InputError.at("cosine", f"must be from -1 to 1 (got {cosine:g})")


def _interval(share: Share) -> str:
    """`4 % (2 to 7)`."""
    return "{:.3g} % ({:.3g} to {:.3g})".format(*(round(100 * one, 1) for one in share))


def _percent(share: float) -> str:
    """A share of which 1,001 quantiles are known."""
    if share < 0.001:
        return "less than 0.1 %"
    return "more than 99.9 %" if share > 0.999 else f"{100 * share:.1f} %"
