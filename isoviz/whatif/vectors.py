"""What a chain does to the isotropy and the usefulness of any vectors, on rows that it was not fitted on."""

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
"""Labelled rows up to which a probe is also cross-validated over all of them: thirds of so few show little."""
_ANSWERS, _FULLS, _CURVES = 128, 32, 64


@dataclass(frozen=True)
class Answer:
    """What is known at once about the image of the rows that are shown.

    Attributes:
        n, d: its points and dimensions.
        measures: by slug, of `isoviz.whatif.engine.at_once()`; None where undefined.
        ev: as of a run's answer.
        readouts: the quick ones by slug.
        reasons: name of a measure that is None → why.
        only_rounding: whether nothing but rounding is left.
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
    """What follows an answer.

    Attributes:
        comparisons: every read-out against no transform, with intervals.
        crossed: the same of a probe and of neighbours, cross-validated over all labelled rows; empty for large sets.
        overlap: share of nearest neighbours that stay, with its interval.
        cosines: of random pairs and neighbours.
        readouts: the slow ones by slug.
    """

    comparisons: Sequence[Comparison]
    crossed: Sequence[Comparison]
    overlap: Difference
    cosines: Cosines = field(repr=False)
    readouts: Mapping[str, Statistic] = field(repr=False)


@dataclass(frozen=True)
class Axis:
    """A parameter of a chain that a curve moves.

    Attributes:
        place: of the step in the chain.
        name: of the parameter.
        title: for a chart: "ZCA whitening: strength s".
        values: the grid, ascending, with the chain's own value.
        current: that value; None where the step leaves it empty.
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
        readout: the chosen read-out; None where it is undefined, or only rounding is left of the vectors.
        change: from no transform, with its interval.
        isoscore, isoscore_low, isoscore_high: with the jackknife's interval; None where undefined.
    """

    value: float
    readout: float | None
    change: Difference
    isoscore: float | None
    isoscore_low: float | None
    isoscore_high: float | None


class VectorsWhatIf(Images):
    """Chains over one part of a set of vectors. May be used from several threads.

    Args:
        vectors: the set.
        part: the rows whose numbers are given; transforms are fitted on neither part.

    Raises:
        InputError: too little to be divided (`isoviz.readouts.division.divide`).
    """

    def __init__(self, found: VectorSet, part: Part = "shown") -> None:
        self.division: Division = divide(found, part)
        super().__init__(_rows(found.points, self.division.fit), _rows(found.points, self.division.rows))
        self.found = found
        self.known = self.division.known
        self._answers: OrderedDict[str, Answer] = OrderedDict()
        self._fulls: OrderedDict[str, Full] = OrderedDict()
        self._curves: OrderedDict[tuple[str, int, str, str], list[CurvePoint]] = OrderedDict()
        self._lock = threading.RLock()

    @property
    def crosses(self) -> bool:
        """Whether a probe is cross-validated over all labelled rows, so that no rows are held back from what is shown."""
        codes, _ = label_codes(self.found.columns)
        return codes is not None and self.known.labels is not None and int((codes >= 0).sum()) <= CROSSED

    @property
    def nbytes(self) -> int:
        """What it holds in memory, without images that were moved."""
        both = self.train.nbytes + self.validation.nbytes
        return both if self._start is None else 5 * both

    # ------------------------------------------------------------------ its numbers

    def answer(self, steps: Sequence[Step], *, build: bool = True) -> Answer:
        """The closed forms and the quick read-outs; with `build=False` NotReadyError where the image takes long."""
        return _remembered(self._lock, self._answers, chains.write(steps), _ANSWERS, lambda: self._answer(steps, build))

    def _answer(self, steps: Sequence[Step], build: bool) -> Answer:
        cloud = self.image(steps, build=build)
        sample, values, reasons, ev = shape_of(cloud, np.zeros((0, cloud.width)))
        quick = [one.slug for one in reading.applicable(self.known, slow=False)]
        readouts = reading.measure(image_of(cloud), self.known, quick)
        return Answer(sample.n, sample.d, values, ev, readouts, reasons, cloud.only_rounding)

    def known_answer(self, steps: Sequence[Step]) -> Answer | None:
        """`answer`, if it was asked for before."""
        with self._lock:
            return self._answers.get(chains.write(steps))

    def known_full(self, steps: Sequence[Step]) -> Full | None:
        """What `stages` returned, if it was asked for before."""
        with self._lock:
            return self._fulls.get(chains.write(steps))

    def stages(self, steps: Sequence[Step]) -> Generator[None, None, Full]:
        """What follows an answer, in stages, so that the caller can do something else in between."""
        full = self.known_full(steps)
        if full is None:
            made = yield from self._stages(steps)
            full = _remembered(self._lock, self._fulls, chains.write(steps), _FULLS, lambda: made)
        return full

    def _stages(self, steps: Sequence[Step]) -> Generator[None, None, Full]:
        first = (yield from self.stages(())) if steps else None
        start, answer = self.answer(()), self.answer(steps)
        yield
        cloud = self.image(steps)
        image = image_of(cloud)
        slow: dict[str, Statistic] = {}
        for one in reading.applicable(self.known, slow=True):
            slow |= reading.measure(image, self.known, [one.slug])
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
        codes, _ = label_codes(self.found.columns)
        if codes is None or not self.crosses:
            return []
        labelled = np.flatnonzero(codes >= 0)
        points = _rows(self.found.points, labelled)

        def fitted(train: NDArray[Any]) -> Callable[[Any], Any]:
            return posthoc.chain([step.make() for step in steps]).fit(train).transform

        readings = labels.cross_fitted(points, codes[labelled], fitted)
        return [
            one for slug, (before, after) in readings.items() for one in reading.compared({slug: before}, {slug: after})
        ]

    # ------------------------------------------------------------------ curves

    def comparison(self, steps: Sequence[Step], slug: str) -> Comparison:
        """One read-out against no transform."""
        both = [reading.measure(image_of(self.image(chain)), self.known, [slug]) for chain in ((), steps)]
        return reading.compared({slug: both[0][slug]}, {slug: both[1][slug]})[0]

    def curve(self, steps: Sequence[Step], axis: Axis, slug: str) -> Generator[None, None, list[CurvePoint]]:
        """A read-out and IsoScore at every value of the axis, a stage each; `known_curve` has those that are done."""
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

    def known_curve(self, steps: Sequence[Step], axis: Axis, slug: str) -> list[CurvePoint]:
        """The points of a curve that are done."""
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
    """The point of a curve that a read-out favours; the first of equal ones; None where nothing is defined."""
    having = [point for point in points if point.readout is not None]
    falls = CATALOGUE[slug].aim == "down"
    return min(having, key=lambda point: (point.readout or 0.0) * (1 if falls else -1), default=None)


def axes(steps: Sequence[Step], d: int) -> list[Axis]:
    """The numbers of a chain that a curve can move, of vectors with d dimensions.

    A slider's range in nine values, its stops, or, for dimensions kept, powers of two.
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
            title = f"{step.title}: {(parameter.title or name).lower()} {symbol}".strip()
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
    """The image as read-outs take it: rotated into the base's coordinates, which changes no cosine and no dot product."""
    alive: Any = cloud.factors != 0
    if alive.all():
        alive = slice(None)  # which copies nothing
    shift = cloud.shift[alive]
    points = cloud.base.validation[:, alive] * cloud.factors[alive]
    points += shift
    beside = float(cloud.mean @ cloud.mean) - float(shift @ shift)  # where the mean goes beyond those coordinates
    if beside > 1e-12 * float(cloud.mean @ cloud.mean):
        points = np.column_stack([points, np.full(len(points), np.sqrt(beside))])
    if points.shape[1] == 0:
        points = np.zeros((len(points), 1))
    return Image(points)


def engine_of(key: str, part: Part = "shown") -> VectorsWhatIf:
    """The engine of a kept set, shared by all who look at it.

    Raises:
        KeyError: the set is gone.
        InputError: too little to be divided.
    """
    engine: VectorsWhatIf = CLOUDS.get(("vectors", key, part), lambda: VectorsWhatIf(vectors.load(key), part))
    return engine


def forget(keys: Collection[str]) -> None:
    """Let go of the engines of sets that were deleted, with their chains."""
    CLOUDS.forget(lambda key: key[0] == "vectors" and key[1] in keys)


def _rows(points: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    return np.asarray(points[rows] if len(rows) < len(points) else points)


def _remembered(
    lock: threading.RLock, entries: OrderedDict[str, Any], key: str, most: int, make: Callable[[], Any]
) -> Any:
    with lock:
        if key in entries:
            entries.move_to_end(key)
            return entries[key]
    made = make()
    with lock:
        entries[key] = made
        while len(entries) > most:
            entries.popitem(last=False)
    return made
