"""Which measure sees what: each measure before and after each change of a cloud.

`responses.json` holds the values, computed by `python -m factory.record_responses` (part of `make docs`). What a cell of the table
says is derived from them here and written down nowhere else.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Literal, NamedTuple

import numpy as np

from isoviz import metrics
from isoviz.formatting import decimals
from isoviz.lessons.checking import Cloud, draw, transformed
from isoviz.lessons.state import State

PLAIN: dict[str, Any] = {"d": 16, "n": 500}
"""The cloud before a change: independent standard normal numbers."""
SEEDS = tuple(range(12))
CLEAR = 0.9
"""A change shows if the value is higher, or lower, in this share of all pairs of draws, one before and one after."""
DIGITS = 7
"""Significant digits in the record."""
Claim = Literal["same", "rises", "falls", "reads higher", "reads lower", "unclear", "undefined"]
"""`same`: exactly unchanged. `reads higher`, `reads lower`: moves, although the quantity that it estimates has not changed: only its
bias. `unclear`: moves by no more than another draw of the points moves it."""

SIGNS: Mapping[Claim, tuple[str, str]] = {
    "rises": ("↑", "rises"),
    "falls": ("↓", "falls"),
    "reads higher": ("⇡", "reads higher: only its bias"),
    "reads lower": ("⇣", "reads lower: only its bias"),
    "unclear": ("≈", "no clear change"),
    "same": ("=", "exactly unchanged"),
    "undefined": ("–", "not computed"),
}
"""Claim → its sign, and what the sign says."""

HOW = (
    f"Medians of {len(SEEDS)} draws. An arrow: the value is higher, or lower, in at least {100 * CLEAR:g} % of all pairs of draws, one "
    "before and one after. Only its bias: the points read differently, but the distribution behind them has the same value."
)


@dataclass(frozen=True)
class Change:
    """A change of a cloud, in the playground's controls.

    Attributes:
        slug, title, help: its name, the heading of its column, and what is done in a few words.
        part: the controls that differ from `PLAIN`.
        begins: slug of the change that it adds to; the plain cloud if empty.
        picture: controls that differ in its picture, which has two dimensions.
    """

    slug: str
    title: str
    help: str
    part: Mapping[str, Any]
    begins: str = ""
    picture: Mapping[str, Any] = field(default_factory=dict)

    @property
    def state(self) -> dict[str, Any]:
        """The playground's controls after the change."""
        return {**PLAIN, **self.part}


_ROGUE = {"rogueScale": 5.0}
CHANGES = (
    Change("shift", "Shift", "2 added to every coordinate", {"shift": 2.0}),
    Change("scale", "Scale", "everything × 3", {"scale": 3.0}),
    Change("rogue", "Rogue dimension", "one dimension × 5", _ROGUE),
    Change("rotation", "Rogue, rotated", "the same, then turned", {**_ROGUE, "rotation": 1.0}, begins="rogue"),
    Change(
        *("low_rank", "Low rank", "12 of 16 dimensions nearly flat"),
        {"spectrum": "step", "rank": 4, "floor": 0.02},
        picture={"rank": 1},
    ),
    Change("clusters", "Clusters", "4 clusters, 8 apart", {"clusters": 4, "separation": 8.0}),
    Change("copies", "Copies", "half of the points copy others", {"duplicates": 0.5}),
    Change("tails", "Heavy tails", "Student t, 3 df, same covariance", {"tails": 3}),
    Change("few", "Few points", "32 in place of 500", {"n": 32}, picture={"n": 10}),
    Change("unit", "Unit length", "every vector divided by its length", {"transforms": [{"slug": "unit_norm"}]}),
)
_KEEPS_DISTRIBUTION = frozenset({"n", "duplicates"})
_KEEPS_MOMENTS = _KEEPS_DISTRIBUTION | {"tails"}
"""Controls that do not change the distribution of a point, or not its mean and covariance."""


class Response(NamedTuple):
    """What a change does to a measure, and the medians over the draws (nan if undefined)."""

    claim: Claim
    before: float
    after: float

    def __str__(self) -> str:
        """In a cell: "↓ 0.10"."""
        sign = SIGNS[self.claim][0]
        return sign if self.claim in ("same", "undefined") else f"{sign} {self.shown[1]}"

    @property
    def shown(self) -> tuple[str, str]:
        """The two medians, with as many decimals as a change needs in order to show."""
        places = 2 if abs(self.after) < 9.995 else 1
        if self.claim not in ("same", "unclear", "undefined"):
            while decimals(self.before, places) == decimals(self.after, places):
                places += 1
        return decimals(self.before, places), decimals(self.after, places)


@functools.cache
def table() -> Mapping[str, Mapping[str, Response]]:
    """slug of a measure → slug of a change → response; of the recorded measures, in display order."""
    record = recorded()
    return {
        slug: {
            change.slug: response(change, record["values"][slug], slug in record["of_moments"]) for change in CHANGES
        }
        for slug in metrics.catalogue()
        if slug in record["values"]
    }


def recorded() -> dict[str, Any]:
    """`responses.json`. values: measure → change or "plain" → one value per seed, None where undefined; of_moments: measures that
    are functions of the mean and the covariance alone."""
    record: dict[str, Any] = json.loads(files(__package__).joinpath("responses.json").read_text(encoding="utf-8"))
    return record


def response(change: Change, values: Mapping[str, Sequence[float | None]], of_moments: bool) -> Response:
    """What the values of a measure, by change, say about one."""
    before, after = (np.array(values[name], dtype=float) for name in (change.begins or "plain", change.slug))
    medians = float(np.median(before)), float(np.median(after))
    if not (np.isfinite(before).all() and np.isfinite(after).all()):
        return Response("undefined", *medians)
    moved = set(change.part)
    bias = moved <= _KEEPS_DISTRIBUTION or (of_moments and moved <= _KEEPS_MOMENTS)
    return Response(_claim(before, after, bias), *medians)


def _claim(before: Cloud, after: Cloud, bias: bool) -> Claim:
    if np.allclose(after, before, rtol=10.0 ** (1 - DIGITS), atol=1e-9):
        return "same"
    higher, lower = ((sign * after[:, None] > sign * before).mean() >= CLEAR for sign in (1, -1))
    if not higher and not lower:
        return "unclear"
    if bias:
        return "reads higher" if higher else "reads lower"
    return "rises" if higher else "falls"


def drawn(part: Mapping[str, Any], seed: int) -> tuple[Cloud, State]:
    """The points (n, d) of a change, the same ones for the same seed as far as the change permits, and their state."""
    state = State(**{**PLAIN, **part})
    return transformed(draw(state, seed), state), state
