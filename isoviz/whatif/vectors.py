"""The effect of a chain on the isotropy and read-outs of any vectors, on rows that it was not fitted on."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz import posthoc, vectors
from isoviz.metrics.intervals import interval_of
from isoviz.metrics.moments import cloud_moments
from isoviz.posthoc.factored import FactoredCloud
from isoviz.readouts import cosines, labels, reading
from isoviz.readouts.cosines import Cosines
from isoviz.readouts.division import Division, Part, divide, label_codes
from isoviz.readouts.image import Image
from isoviz.readouts.reading import CATALOGUE, Comparison
from isoviz.statistics import paired_bootstrap
from isoviz.statistics.paired_bootstrap import Difference, Statistic
from isoviz.vectors import VectorSet
from isoviz.whatif import chains
from isoviz.whatif.chains import Step
from isoviz.whatif.engine import CLOUDS, shape_of
from isoviz.whatif.images import Images

CROSSED: Final = 1_000
"""Most labelled rows for which read-outs are also cross-validated over all rows, because thirds would be too small."""
_CURVES: Final = 64


@dataclass(frozen=True)
class Answer:
    """Instant numbers of the image of the rows shown.

    Attributes:
        n, d: points and dimensions.
        measures: values of `isoviz.whatif.engine.instant_metrics()` by slug; None if undefined.
        ev: as in `isoviz.whatif.engine.Answer`.
        readouts: quick read-outs by slug.
        reasons: name of an undefined measure → reason.
        only_rounding: only rounding error is left.
    """

    n: int
    d: int
    measures: Mapping[str, float | None]
    ev: NDArray[np.float64] | None
    readouts: Mapping[str, Statistic] = field(repr=False)
    reasons: Mapping[str, str] = field(default_factory=dict)
    only_rounding: bool = False


@dataclass(frozen=True)
class Full:
    """Slow numbers that follow an `Answer`.

    Attributes:
        comparisons: all read-outs against no transform, with intervals.
        crossed: the same for a probe and for neighbours, cross-validated over all labelled rows; empty for large sets.
        overlap: share of nearest neighbours that stay, with its interval.
        cosines: cosines of random pairs and neighbours.
        readouts: slow read-outs by slug.
    """

    comparisons: Sequence[Comparison]
    crossed: Sequence[Comparison]
    overlap: Difference
    cosines: Cosines = field(repr=False)
    readouts: Mapping[str, Statistic] = field(repr=False)


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
        params = {**old.params.model_dump(), self.name: int(value) if self._whole(old) else value}
        return (*steps[: self.place], chains.step(old.slug, **params), *steps[self.place + 1 :])

    def _whole(self, step: Step) -> bool:
        return type(step.params).model_fields[self.name].annotation in (int, int | None)


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


class VectorsWhatIf(Images[Answer, Full]):
    """Chains over one part of a set of vectors. Thread-safe.

    Args:
        vector_set: the set.
        part: the rows that are measured. Transforms are fitted on rows of neither part.

    Raises:
        InputError: too few rows to divide (`isoviz.readouts.division.divide`).
    """

    def __init__(self, vector_set: VectorSet, part: Part = "shown") -> None:
        self.division: Division = divide(vector_set, part)
        super().__init__(_rows(vector_set.points, self.division.fit), _rows(vector_set.points, self.division.rows))
        self.vector_set = vector_set
        self.annotations = self.division.annotations
        self._curves: OrderedDict[tuple[str, int, str, str], list[CurvePoint]] = OrderedDict()
        self._lock = threading.RLock()

    @property
    def crosses(self) -> bool:
        """Whether read-outs are cross-validated over all labelled rows, so that no rows are held back."""
        codes, _ = label_codes(self.vector_set.columns)
        return codes is not None and self.annotations.labels is not None and int((codes >= 0).sum()) <= CROSSED

    # ------------------------------------------------------------------ its numbers

    def _answer(self, cloud: FactoredCloud) -> Answer:
        sample, values, reasons, ev = shape_of(cloud, np.zeros((0, cloud.width)))
        quick = [readout.slug for readout in reading.applicable(self.annotations, slow=False)]
        readouts = reading.measure(image_of(cloud), self.annotations, quick)
        return Answer(sample.n, sample.d, values, ev, readouts, reasons, cloud.only_rounding)

    def _stages(self, steps: Sequence[Step]) -> Generator[None, None, Full]:
        first = (yield from self.stages(())) if steps else None
        start, answer = self.answer(()), self.answer(steps)
        yield
        cloud = self.image(steps)
        image = image_of(cloud)
        slow: dict[str, Statistic] = {}
        for readout in reading.applicable(self.annotations, slow=True):
            slow |= reading.measure(image, self.annotations, [readout.slug])
            yield
        before = {**start.readouts, **(first.readouts if first else slow)}
        comparisons = reading.compared(before, {**answer.readouts, **slow})
        yield
        crossed = self._crossed(steps) if steps else []
        yield
        overlap = cosines.overlap(image_of(self.image(())), image)
        yield
        return Full(
            comparisons=comparisons,
            crossed=crossed,
            overlap=paired_bootstrap.interval(overlap),
            cosines=cosines.distribution(image),
            readouts=slow,
        )

    def _crossed(self, steps: Sequence[Step]) -> list[Comparison]:
        codes, _ = label_codes(self.vector_set.columns)
        if codes is None or not self.crosses:
            return []
        labelled = np.flatnonzero(codes >= 0)
        points = _rows(self.vector_set.points, labelled)

        def fitted(train: NDArray[Any]) -> Callable[[Any], Any]:
            return posthoc.chain([step.make() for step in steps]).fit(train).transform

        readings = labels.cross_fitted(points, codes[labelled], fitted)
        return [
            comparison
            for slug, (before, after) in readings.items()
            for comparison in reading.compared({slug: before}, {slug: after})
        ]

    # ------------------------------------------------------------------ curves

    def comparison(self, steps: Sequence[Step], slug: str) -> Comparison:
        """One read-out against no transform."""
        readings = [reading.measure(image_of(self.image(chain)), self.annotations, [slug]) for chain in ((), steps)]
        return reading.compared({slug: readings[0][slug]}, {slug: readings[1][slug]})[0]

    def curve(self, steps: Sequence[Step], axis: Axis, slug: str) -> Generator[None, None, list[CurvePoint]]:
        """A read-out and IsoScore at every value of the axis, one stage per value; `cached_curve` returns the finished points."""
        key = (chains.write(steps), axis.place, axis.name, slug)
        with self._lock:
            points = self._curves.setdefault(key, [])
            self._curves.move_to_end(key)
            while len(self._curves) > _CURVES:
                self._curves.popitem(last=False)
        for value in axis.values[len(points) :]:
            point = self._point(axis.moved(steps, value), value, slug)
            with self._lock:
                if len(points) < len(axis.values) and (not points or points[-1].value < value):
                    points.append(point)
            yield
        return points

    def cached_curve(self, steps: Sequence[Step], axis: Axis, slug: str) -> list[CurvePoint]:
        """The finished points of a curve."""
        with self._lock:
            return list(self._curves.get((chains.write(steps), axis.place, axis.name, slug), []))

    def _point(self, steps: Sequence[Step], value: float, slug: str) -> CurvePoint:
        cloud = self.image(steps)
        comparison = self.comparison(steps, slug)
        if cloud.only_rounding:
            return CurvePoint(value, None, Difference(None, None, None, comparison.difference.n, 0), None, None, None)
        points = cloud.image(cloud.validation)
        moments = cloud_moments(points, float(np.finfo(np.float64).eps), quartic=True, keep_centred=True)
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

    Values: nine over a slider's range, its stops, or powers of two for a number of dimensions.
    """
    chain_axes = []
    width = d
    for index, step in enumerate(steps):
        for name, parameter in type(step.params).model_fields.items():
            extra = parameter.json_schema_extra if isinstance(parameter.json_schema_extra, dict) else {}
            grid = _grid(extra, name, parameter.annotation in (int, int | None), width)
            if grid is None:
                continue
            current = getattr(step.params, name)
            values = sorted({*grid, *([] if current is None else [float(current)])})
            symbol = str(extra.get("symbol") or "")
            title = f"{step.kind.title}: {(parameter.title or name).lower()} {symbol}".strip()
            chain_axes.append(Axis(index, name, title, tuple(values), None if current is None else float(current)))
        if not step.kind.needs_labels:
            width = step.make().image_width(width)
    return chain_axes


_COUNTS: Final = (0, 1, 2, 3, 5, 8, 12, 20, 30, 40)
_KEPT: Final = ("keep", "components")
_RIDGES: Final = (0.0, 0.001, 0.01, 0.1, 1.0, 10.0)


def _grid(extra: Mapping[str, Any], name: str, whole: bool, d: int) -> list[float] | None:
    if name in _KEPT:
        powers = [2**power for power in range(1, d.bit_length()) if 2**power < d]
        return [float(count) for count in (*powers, d)]
    if name == "eps":
        return list(_RIDGES)
    if extra.get("stops"):
        return sorted(map(float, extra["stops"]))
    if not extra.get("slider"):
        return None
    low, high, step = extra["slider"]
    if whole:
        return [float(count) for count in _COUNTS if low <= count <= min(high, d - 1)]
    return sorted({round(round(value / step) * step, 6) for value in np.linspace(low, high, 9)})


def image_of(cloud: FactoredCloud) -> Image:
    """The image for read-outs, rotated into the base's coordinates, which changes neither cosines nor dot products."""
    alive: Any = cloud.factors != 0
    if alive.all():
        alive = slice(None)  # a view, not a copy
    shift = cloud.shift[alive]
    points = cloud.base.validation[:, alive] * cloud.factors[alive]
    points += shift
    remainder = float(cloud.mean @ cloud.mean) - float(
        shift @ shift
    )  # squared length of the mean outside these coordinates
    if remainder > 1e-12 * float(cloud.mean @ cloud.mean):
        points = np.column_stack([points, np.full(len(points), np.sqrt(remainder))])
    if points.shape[1] == 0:
        points = np.zeros((len(points), 1))
    return Image(points)


def engine_of(key: str, part: Part = "shown") -> VectorsWhatIf:
    """The engine of a stored set, shared by all sessions.

    Raises:
        KeyError: the set no longer exists.
        InputError: too few rows to divide.
    """
    engine: VectorsWhatIf = CLOUDS.get(("vectors", key, part), lambda: VectorsWhatIf(vectors.load(key), part))
    return engine


def forget(keys: Collection[str]) -> None:
    """Remove the engines of deleted sets, with their chains."""
    CLOUDS.forget(lambda key: key[0] == "vectors" and key[1] in keys)


def _rows(points: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    return np.asarray(points[rows] if len(rows) < len(points) else points)
