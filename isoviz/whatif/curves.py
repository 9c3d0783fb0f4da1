"""Curves of a read-out and of IsoScore over one parameter of a chain."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from isoviz.metrics.intervals import interval_of
from isoviz.metrics.moments import cloud_moments
from isoviz.readouts.reading import CATALOGUE
from isoviz.statistics.paired_bootstrap import Difference
from isoviz.whatif import chains
from isoviz.whatif.chains import Step
from isoviz.whatif.engine import WhatIf


@dataclass(frozen=True)
class Axis:
    """The parameter of a chain that a curve varies.

    Attributes:
        place: index of the step in the chain.
        name: name of the parameter.
        title: title on a chart: "ZCA whitening: strength s".
        values: the ascending grid, including the chain's own value.
        current: the chain's own value; None if unset.
    """

    place: int
    name: str
    title: str
    values: tuple[float, ...]
    current: float | None

    def moved(self, steps: Sequence[Step], value: float) -> tuple[Step, ...]:
        """The chain with that value."""
        old = steps[self.place]
        whole = type(old.params).model_fields[self.name].annotation in (int, int | None)
        params = {**old.params.model_dump(), self.name: int(value) if whole else value}
        return (*steps[: self.place], chains.step(old.slug, **params), *steps[self.place + 1 :])


@dataclass(frozen=True)
class CurvePoint:
    """A chain with one value of the parameter.

    Attributes:
        readout: the selected read-out; None if undefined, or if only rounding error is left.
        change: change from no transform, with its interval.
        isoscore, isoscore_low, isoscore_high: IsoScore with its jackknife interval; None if undefined.
    """

    value: float
    readout: float | None
    change: Difference
    isoscore: float | None
    isoscore_low: float | None
    isoscore_high: float | None


def curve(engine: WhatIf, steps: Sequence[Step], axis: Axis, slug: str) -> Generator[None, None, list[CurvePoint]]:
    """A read-out and IsoScore at every value of the axis, one stage per value; `cached_curve` returns the finished points."""
    points = _points(engine, steps, axis, slug)
    for value in axis.values:
        if value not in points:  # another thread may add it too: it is the same point
            points[value] = _point(engine, axis.moved(steps, value), value, slug)
            yield
    return [points[value] for value in axis.values]


def cached_curve(engine: WhatIf, steps: Sequence[Step], axis: Axis, slug: str) -> list[CurvePoint]:
    """The finished points of a curve."""
    points = _points(engine, steps, axis, slug)
    return [points[value] for value in axis.values if value in points]


def _points(engine: WhatIf, steps: Sequence[Step], axis: Axis, slug: str) -> dict[float, CurvePoint]:
    """The finished points by value, to which `curve` adds."""
    points: dict[float, CurvePoint] = engine.curves.get((chains.write(steps), axis.place, axis.name, slug), dict)
    return points


def _point(engine: WhatIf, steps: Sequence[Step], value: float, slug: str) -> CurvePoint:
    cloud = engine.image(steps)
    comparison = engine.comparison(steps, slug)
    if cloud.only_rounding:
        return CurvePoint(value, None, Difference(None, None, None, comparison.difference.n, 0), None, None, None)
    points = cloud.image(cloud.validation)
    moments = cloud_moments(points, float(np.finfo(np.float64).eps))
    score = interval_of(moments, estimator="plain")
    ends = (score.estimate, score.low, score.high)
    isoscore, low, high = (float(end) if np.isfinite(end) else None for end in ends)
    return CurvePoint(value, comparison.after, comparison.difference, isoscore, low, high)


def best(points: Sequence[CurvePoint], slug: str) -> CurvePoint | None:
    """The point of a curve with the best read-out (the first in a tie); None if none is defined."""
    having = [point for point in points if point.readout is not None]
    falls = CATALOGUE[slug].aim == "down"
    return min(having, key=lambda point: (point.readout or 0.0) * (1 if falls else -1), default=None)


def axes(steps: Sequence[Step], d: int) -> list[Axis]:
    """The parameters of a chain that a curve can vary, for vectors with d dimensions.

    Values: nine over a slider's range, its stops, powers of two for a number of dimensions, or each dimension.
    """
    chain_axes = []
    width = d
    for index, step in enumerate(steps):
        for name, parameter in type(step.params).model_fields.items():
            extra = parameter.json_schema_extra if isinstance(parameter.json_schema_extra, dict) else {}
            if name == ("ridge" if getattr(step.params, "ridge", None) is None and "eps" in step.changed else "eps"):
                continue  # ε is given once
            grid = _grid(extra, name, parameter.annotation in (int, int | None), width)
            if grid is None:
                continue
            current = getattr(step.params, name)
            values = sorted({*grid, *([] if current is None else [float(current)])})
            symbol = str(extra.get("symbol") or "")
            title = f"{step.kind.title}: {(parameter.title or name).lower()} {symbol}".strip()
            chain_axes.append(Axis(index, name, title, tuple(values), None if current is None else float(current)))
        if step.kind.needs != "labels":
            width = step.make().image_width(width)
    return chain_axes


_COUNTS: Final = (0, 1, 2, 3, 5, 8, 12, 20, 30, 40)
_KEPT: Final = ("keep", "components")
_DIMENSIONS: Final = 256
"""Most dimensions of which a curve drops each; of more, evenly spaced ones."""
_RIDGES: Final = (0.0, 0.001, 0.01, 0.1, 1.0, 10.0)


def _grid(extra: Mapping[str, Any], name: str, whole: bool, d: int) -> list[float] | None:
    if name == "dimension":
        return [float(number) for number in np.unique(np.linspace(0, d - 1, min(d, _DIMENSIONS)).astype(int))]
    if name in _KEPT:
        powers = [2**power for power in range(1, d.bit_length()) if 2**power < d]
        return [float(count) for count in (*powers, d)]
    if name in ("ridge", "eps"):
        return list(_RIDGES)
    if extra.get("stops"):
        return sorted(map(float, extra["stops"]))
    if not extra.get("slider"):
        return None
    low, high, step = extra["slider"]
    if whole:
        return [float(count) for count in _COUNTS if low <= count <= min(high, d - 1)]
    return sorted({round(round(value / step) * step, 6) for value in np.linspace(low, high, 9)})
