"""The effect of a chain on a cloud: closed-form numbers instantly, the others in the background.

The cloud is a run's (`Embeddings`) or a part of a set of vectors (`Division`). They differ in their annotations, which say which
read-outs apply, and in the slow numbers that follow.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz import metrics, posthoc, vectors
from isoviz.errors import InputError
from isoviz.exploring.jobs import PREPARE
from isoviz.jobs.kinds import Job, JobKind, Pool
from isoviz.metrics.cloud import resolution
from isoviz.metrics.measuring import reading_of
from isoviz.metrics.moments import WHITENED
from isoviz.metrics.protocol import Metric
from isoviz.metrics.sample import Sample
from isoviz.metrics.scores import REPORTED_ZETA
from isoviz.metrics.spectrum import cumulative_shares
from isoviz.posthoc.directions import peak_signs
from isoviz.posthoc.export import require_affine
from isoviz.posthoc.factored import FactoredCloud
from isoviz.posthoc.protocol import Groups
from isoviz.readouts import cosines, labels, reading
from isoviz.readouts.division import Division, Part, divide
from isoviz.readouts.isotropy import Isotropy
from isoviz.readouts.reading import Comparison
from isoviz.statistics import paired_bootstrap
from isoviz.statistics.paired_bootstrap import Difference, Statistic
from isoviz.whatif import chains, layer
from isoviz.whatif.chains import Step
from isoviz.whatif.embeddings import Cloud, Embeddings, load
from isoviz.whatif.images import IMAGES, ImageSample, NotReadyError, SharedCache, image_of
from isoviz.whatif.request import STORE, LayerRequest

_ANSWERS, _FULLS = 256, 64
"""Chains whose numbers are cached for one cloud."""


def instant_metrics() -> list[Metric]:
    """Metrics updated while a slider moves: from one covariance, its eigenvalues and one pass over the points, in any rotation."""
    return [
        metric
        for metric in _numbers()
        if metric.from_sums
        and not metric.inputs
        and "rotation" in metric.unchanged_by
        and (metric.cost == "closed form" or (metric.cost == "eigenvalues" and "shift" in metric.unchanged_by))
    ]


def slow_metrics() -> list[Metric]:
    """The other metrics: of pairs of points, of single dimensions, or with further inputs."""
    instant = instant_metrics()
    return [metric for metric in _numbers() if metric not in instant]


def _numbers() -> list[Metric]:
    """Metrics that give one number for independent points, with inputs that a chain can supply."""
    every = metrics.catalogue().values()
    return [metric for metric in every if metric.in_runs and ("rows" in metric.kinds or metric.inputs)]


Splits = tuple[Groups | None, Groups | None]
"""Group codes of the rows that transforms are fitted on, and of those measured; None if unknown."""

EV_KEPT: Final = 200


@dataclass(frozen=True)
class Answer:
    """Instant numbers of the image of the validation rows.

    Attributes:
        n, d: points and dimensions.
        measures: values of `instant_metrics()` by slug; None if undefined.
        ev: (k,) EV_1 … EV_k, k at most `EV_KEPT`; None if undefined.
        readouts: quick read-outs by slug.
        reasons: name of an undefined value → reason.
        only_rounding: only rounding error is left (`FactoredCloud.only_rounding`).
        isotropy: IsoScore, to be compared with that of another chain.
        notes: what the transforms dropped or could not do, each a sentence without full stop.
        dead: dimensions of the rows that transforms are fitted on that do not vary.
        simplex: `FactoredCloud.simplex`.
    """

    n: int
    d: int
    measures: Mapping[str, float | None]
    ev: NDArray[np.float64] | None = None
    readouts: Mapping[str, Statistic] = field(repr=False, default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    only_rounding: bool = False
    isotropy: Isotropy = field(repr=False, default_factory=lambda: Isotropy(None, None, 0))
    notes: tuple[str, ...] = ()
    dead: Sequence[int] = ()
    simplex: bool = False


@dataclass(frozen=True)
class Full:
    """Slow numbers that follow an `Answer`.

    Attributes:
        comparisons: all read-outs against no transform, with intervals.
        readouts: slow read-outs by slug.
        measures: of a run: values of `slow_metrics()` by slug; None if undefined.
        reasons: name of an undefined measure → reason.
        map: of a run: (m, 2) the two strongest principal components of the image.
        map_shares: their shares of the variance.
        crossed: of a small labelled set: a probe and neighbours against no transform, cross-validated over all labelled rows.
        overlap: of a set: share of nearest neighbours that stay, with its interval.
    """

    comparisons: Sequence[Comparison]
    readouts: Mapping[str, Statistic] = field(repr=False, default_factory=dict)
    measures: Mapping[str, float | None] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    map: NDArray[np.float32] = field(repr=False, default_factory=lambda: np.zeros((0, 2), np.float32))
    map_shares: tuple[float, float] = (0.0, 0.0)
    crossed: Sequence[Comparison] = ()
    overlap: Difference | None = None

    def difference(self, slug: str) -> Difference:
        """One read-out against no transform."""
        return next(one.difference for one in self.comparisons if one.readout.slug == slug)


class WhatIf:
    """Chains over one cloud. Thread-safe.

    Args:
        source: the cloud: one of a run's `Embeddings`, or a part of a set of vectors.
        key: key under which the embeddings or the set are stored; "" if they are not.
        trains: train layers in this process (imports torch); otherwise use only layers trained by a job.
    """

    def __init__(self, source: Embeddings | Division, key: str = "", *, trains: bool = False) -> None:
        self.train, self.validation = source.train, source.validation
        self.resolution = resolution(self.train)
        self.source = source
        self.key = key
        self.annotations = source.annotations
        self.groups: Splits = source.groups if isinstance(source, Division) else (None, None)
        self.trains = trains
        self._answers = SharedCache(limit=_ANSWERS)
        self._fulls = SharedCache(limit=_FULLS)
        self._start: FactoredCloud | None = None
        self._images = object()  # part of the keys of IMAGES: unique to this cloud
        self._overlaps = isinstance(source, Division) and bool(np.isin(source.rows, source.fit).any())

    # ------------------------------------------------------------------ images

    @property
    def nbytes(self) -> int:
        """Memory in bytes, without images whose points were moved."""
        points_bytes = self.train.nbytes + self.validation.nbytes
        return points_bytes if self._start is None else 5 * points_bytes  # plus float64 copies in both bases

    def image(self, steps: Sequence[Step], *, build: bool = True) -> FactoredCloud:
        """The image under a chain; each step is fitted on the training image of the previous steps.

        Args:
            build: compute slow images; otherwise raise `NotReadyError`.

        Raises:
            InputError: a step cannot be fitted here (field `chain`).
            NotReadyError: a layer must be trained first, or, without `build`, a slow image must be computed.
        """
        if self._start is None:
            train, rows = (np.asarray(split, np.float64) for split in (self.train, self.validation))
            self._start = self._stored("", lambda: FactoredCloud.of_points(train, rows, self.resolution), build)
        cloud = self._start
        for number, step in enumerate(steps):
            with _naming(step):
                cloud = self._advanced(cloud, step, chains.write(steps[:number]), build)
        return cloud

    def affine(self, steps: Sequence[Step]) -> posthoc.Affine:
        """The chain as one matrix. Raises like `image`, and `InputError` for a step that is not affine."""
        points = np.asarray(self.train, np.float64)
        composed = posthoc.Affine(np.eye(points.shape[1]), np.zeros(points.shape[1]))
        for number, step in enumerate(steps):
            transform, fitted = self._transform(step, chains.write(steps[:number]))
            with _naming(step):
                step_map = require_affine(transform if fitted else transform.fit(points, self.groups[0]))
            composed, points = composed.then(step_map), step_map.of_points(points)
        return composed

    def _advanced(self, cloud: FactoredCloud, step: Step, before: str, build: bool) -> FactoredCloud:
        coordinates = step.kind.coordinates
        if coordinates is None:
            transform, fitted = self._transform(step, before)
            make = functools.partial(_moved, step, transform, cloud, fitted, self.groups)
            return self._stored(f"{before}~{step.text}", make, build)
        if not cloud.has(coordinates):
            turn = functools.partial(cloud.along, coordinates)
            cloud = turn() if cloud.has_cached(coordinates) else self._stored(f"{before}|{coordinates}", turn, build)
        return _titled(step, cloud, step.make().act(cloud))

    def _stored(self, key: str, make: Callable[[], FactoredCloud], build: bool) -> FactoredCloud:
        image: FactoredCloud | None = IMAGES.get((self._images, key), make if build else None)
        if image is None:
            raise NotReadyError
        return image

    def _transform(self, step: Step, before: str) -> tuple[posthoc.Transform, bool]:
        """The transform of a step that moves points, and whether it is fitted already."""
        if step.kind.needs == "groups" and self.groups[0] is None:
            raise InputError("these rows have no labels; add labels that name each row's language", field="chain")
        if step.kind.needs != "labels":
            return step.make(), False
        rows = self.annotations.head
        if rows is None or not isinstance(self.source, Embeddings):
            raise InputError("it is trained on a run's labels and head", field="chain")
        request = LayerRequest(self.source.key, self.source.cloud, before, step.params.model_dump())
        trained = layer.trained(request, rows)
        if trained is None and not self.trains:
            raise NotReadyError(request)
        return trained or step.kind(rows, **step.params.model_dump()), trained is not None

    # ------------------------------------------------------------------ the instant numbers

    def answer(self, steps: Sequence[Step], *, build: bool = True) -> Answer:
        """The instant numbers. With `build=False`, raises `NotReadyError` if the image takes long to compute."""
        answer = self.cached_answer(steps)
        if answer is None:
            cloud = self.image(steps, build=build)
            answer = self._answers.get(chains.write(steps), lambda: self._answer(cloud))
        assert answer is not None
        return answer

    def cached_answer(self, steps: Sequence[Step]) -> Answer | None:
        """`answer`, if cached."""
        answer: Answer | None = self._answers.get(chains.write(steps))
        return answer

    def _answer(self, cloud: FactoredCloud) -> Answer:
        rows = self.annotations.head
        sample = ImageSample(cloud, np.zeros((0, cloud.width)) if rows is None else rows.head.weight)
        values, reasons = _measured(instant_metrics(), sample)
        if cloud.whitened and self._overlaps:
            values["isoscore_unbiased"], reasons["isoscore_unbiased"] = None, WHITENED
        spectrum = sample.eigenvalues
        ev = None if spectrum is None else cumulative_shares(spectrum, min(EV_KEPT, sample.n, sample.d))
        readouts: dict[str, Statistic] = {}
        if rows is None:
            quick = [readout.slug for readout in reading.applicable(self.annotations, slow=False)]
            readouts = reading.measure(image_of(cloud), self.annotations, quick)
        else:
            readouts["frozen"] = frozen = rows.frozen(sample.logits)
            if frozen.predicted is None:
                reasons["frozen"] = f"the frozen head reads {rows.head.width} numbers, the chain leaves {sample.d}"
            elif frozen.value is None:
                reasons["frozen"] = "the metric is undefined for these predictions"
        isotropy = Isotropy(values["isoscore"], sample.influence, sample.n)
        told = isotropy, cloud.notes, cloud.dead, cloud.simplex
        return Answer(sample.n, sample.d, values, ev, readouts, reasons, cloud.only_rounding, *told)

    def comparison(self, steps: Sequence[Step], slug: str) -> Comparison:
        """One read-out of a set against no transform."""
        readings = [reading.measure(image_of(self.image(chain)), self.annotations, [slug]) for chain in ((), steps)]
        return reading.compared(*readings)[0]

    # ------------------------------------------------------------------ the slow numbers

    def full(self, steps: Sequence[Step]) -> Full:
        """The slow numbers."""
        stages = self.stages(steps)
        while True:
            try:
                next(stages)
            except StopIteration as end:
                full: Full = end.value
                return full

    def stages(self, steps: Sequence[Step]) -> Generator[None, None, Full]:
        """`full` as a generator that yields between stages, so that the caller can do other work."""
        full = self.cached_full(steps)
        if full is None:
            first = (yield from self.stages(())) if steps else None
            computed = yield from (self._of_set if self.annotations.head is None else self._of_run)(steps, first)
            full = self._fulls.get(chains.write(steps), lambda: computed)
        assert full is not None
        return full

    def cached_full(self, steps: Sequence[Step]) -> Full | None:
        """`full`, if cached."""
        full: Full | None = self._fulls.get(chains.write(steps))
        return full

    def _compared(self, steps: Sequence[Step], first: Full | None, slow: Mapping[str, Statistic]) -> list[Comparison]:
        """All read-outs against no transform, whose slow numbers are `first`; None for no transform itself."""
        before = {**self.answer(()).readouts, **(first.readouts if first else slow)}
        return reading.compared(before, {**self.answer(steps).readouts, **slow})

    def _of_run(self, steps: Sequence[Step], first: Full | None) -> Generator[None, None, Full]:
        """The refitted head, the map, and the slow metrics."""
        assert self.annotations.head is not None
        cloud = self.image(steps)
        self.answer(())
        yield
        alive = cloud.factors != 0
        if not alive.any():  # the chain removed all directions
            alive[0] = True
        points = cloud.validation[:, alive]
        slow = {"refitted": self.annotations.head.refitted(cloud.train[:, alive], points, cloud.width)}
        yield
        comparisons = self._compared(steps, first, slow)
        places, shares = _map(cloud)
        if first is not None:  # the arbitrary signs for which the map resembles the one without transform
            places = places * np.where((places * first.map).sum(axis=0) < 0, np.float32(-1), np.float32(1))
        yield
        inputs = {"shrinkage_cov": cloud.train_covariance, "zeta": REPORTED_ZETA}
        image = Sample(cloud.image(cloud.validation), inputs=inputs)
        measures: dict[str, float | None] = {}
        reasons: dict[str, str] = {}
        for metric in slow_metrics():
            yield
            value, reason = _measured([metric], image)
            measures |= value
            reasons |= reason
        return Full(comparisons, slow, measures, reasons, places, shares)

    def _of_set(self, steps: Sequence[Step], first: Full | None) -> Generator[None, None, Full]:
        """The slow read-outs, those cross-validated over all rows, and what the nearest neighbours do."""
        image = image_of(self.image(steps))
        slow: dict[str, Statistic] = {}
        readouts = [readout.slug for readout in reading.applicable(self.annotations, slow=True)]
        # read-outs by one similarity share its scores
        for name in dict.fromkeys(slug.rpartition("_")[2] for slug in readouts):
            requested = [slug for slug in readouts if slug.rpartition("_")[2] == name]
            if "probe" in requested and self.annotations.labels is not None:
                slow["probe"] = yield from reading.probe_stages(image, self.annotations.labels)
                requested.remove("probe")
            slow |= reading.measure(image, self.annotations, requested)
            yield
        comparisons = self._compared(steps, first, slow)
        yield
        crossed = (yield from self._crossed(steps)) if steps else []
        yield
        overlap = paired_bootstrap.interval(cosines.overlap(image_of(self.image(())), image))
        return Full(comparisons, slow, crossed=crossed, overlap=overlap)

    def _crossed(self, steps: Sequence[Step]) -> Generator[None, None, list[Comparison]]:
        labelled = self.source.crossed if isinstance(self.source, Division) else None
        grouped = any(step.kind.needs == "groups" for step in steps)  # it would be given the labels to be predicted
        if labelled is None or grouped:
            return []

        def fitted(train: NDArray[Any]) -> Callable[[Any], Any]:
            return posthoc.chain([step.make() for step in steps]).fit(train).transform

        readings = yield from labels.crossed_stages(*labelled, fitted)
        before, after = ({slug: pair[index] for slug, pair in readings.items()} for index in (0, 1))
        return reading.compared(before, after)


CLOUDS: Final = SharedCache(lambda engine: engine.nbytes, 1 / 8)
"""Engines of the clouds in use."""


def engine_of(key: str, part: Cloud | Part = "shown") -> WhatIf:
    """The engine of a run's cloud or of a part of a stored set, shared by all sessions.

    Raises:
        KeyError: the embeddings are no longer cached, or the set no longer exists.
        InputError: the set has too few rows to divide.
    """
    engine: WhatIf
    if part == "shown" or part == "held back":
        engine = CLOUDS.get((key, part), lambda: WhatIf(divide(vectors.load(key), part), key))
    else:
        embeddings = load(key, part)
        engine = CLOUDS.get((embeddings.folder, part), lambda: WhatIf(embeddings, key))
    return engine


def forget(keys: Collection[str]) -> None:
    """Remove the engines of deleted sets, with their chains."""
    CLOUDS.forget(lambda key: key[0] in keys)


def train_layer(request: LayerRequest, report: layer.Report) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Facts and arrays (`matrix`, `offset`) of a layer trained after the chain `request.before`."""
    embeddings = load(request.embeddings, request.cloud)  # type: ignore[arg-type]
    image = WhatIf(embeddings, trains=True).image(chains.read(request.before))
    trained = embeddings.isolayer(report=report, **request.params)
    return {"request": request.as_json()}, trained.fit(image.image(image.train)).learnt.arrays


def _train(job: Job) -> None:
    job.publish(*train_layer(LayerRequest(**job.request), job.report))


LAYER: Final = JobKind(
    name="layer",
    room=__name__,
    work=_train,
    results=STORE,
    pool=Pool("layers", cores=2),
    prepare=PREPARE,
    warm_seconds=60.0,
)
"""Jobs for a `LayerRequest`; the next move of a slider requests another one."""


@contextlib.contextmanager
def _naming(step: Step) -> Iterator[None]:
    """Add the step to the error that it cannot be fitted."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{step.title}: {error}", field="chain") from None


def _titled(step: Step, before: FactoredCloud, image: FactoredCloud) -> FactoredCloud:
    """The image whose newest notes name the step."""
    own = (f"{step.title}: {note}" for note in image.notes[len(before.notes) :])
    return replace(image, notes=(*before.notes, *own))


def _moved(
    step: Step, transform: posthoc.Transform, cloud: FactoredCloud, fitted: bool, groups: Splits
) -> FactoredCloud:
    """Apply a step that cannot act on factors to every point."""
    splits = cloud.image(cloud.train), cloud.image(cloud.validation)
    if not fitted:
        transform.fit(splits[0], groups[0])
    train, validation = (np.asarray(transform.transform(*split)) for split in zip(splits, groups, strict=True))
    notes = (*cloud.notes, *(transform.learnt.notes if isinstance(transform, posthoc.CataloguedTransform) else ()))
    image = FactoredCloud.of_points(train, validation, cloud.resolution)
    image = replace(image, only_rounding=cloud.only_rounding, whitened=cloud.whitened, notes=notes)
    return _titled(step, cloud, image)


def _measured(metrics_to_measure: Iterable[Metric], sample: Sample) -> tuple[dict[str, float | None], dict[str, str]]:
    """Values by slug, None if undefined, and the reasons."""
    readings = {metric.slug: reading_of(metric, sample, interval=False) for metric in metrics_to_measure}
    reasons = {slug: reading.undefined for slug, reading in readings.items() if reading.undefined}
    return {slug: _finite(reading.value) for slug, reading in readings.items()}, reasons


def _map(cloud: FactoredCloud) -> tuple[NDArray[np.float32], tuple[float, float]]:
    covariance = cloud.validation_covariance
    values, directions = np.linalg.eigh(covariance)
    top = directions[:, ::-1][:, :2]
    if top.shape[1] < 2:
        top = np.hstack([top, np.zeros((len(top), 1))])
    total = float(values.sum())
    centred = cloud.validation - cloud.base.validation_mean * cloud.factors
    strongest = [*values[::-1][:2], 0.0][:2]
    shares = (strongest[0] / total, strongest[1] / total) if total > 0 else (0.0, 0.0)
    places = centred @ top
    return (places * peak_signs(places)).astype(np.float32), shares  # a solver's signs differ between processors


def _finite(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)
