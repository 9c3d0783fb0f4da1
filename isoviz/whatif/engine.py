"""The effect of a chain on a run's embeddings: closed-form numbers instantly, the others in the background."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz import metrics, posthoc
from isoviz.metrics.measuring import reading_of
from isoviz.metrics.moments import Moments, sum_of_squares
from isoviz.metrics.protocol import Metric
from isoviz.metrics.sample import Directions, Sample
from isoviz.metrics.scores import REPORTED_ZETA
from isoviz.metrics.spectrum import cumulative_shares
from isoviz.posthoc.factored import FactoredCloud, Matrix
from isoviz.readouts.labels import linear_head
from isoviz.statistics.paired_bootstrap import Difference
from isoviz.whatif import chains, layer
from isoviz.whatif.chains import Step
from isoviz.whatif.embeddings import Cloud, Embeddings, load
from isoviz.whatif.heads import paired_difference, primary
from isoviz.whatif.images import Images, NotReadyError, SharedCache
from isoviz.whatif.request import LayerRequest


def instant_metrics() -> list[Metric]:
    """Metrics updated while a slider moves: from one covariance, its eigenvalues and one pass over the points, in any rotation."""
    return [
        metric
        for metric in _numbers()
        if metric.from_sums
        and not metric.inputs
        and "rotation" in metric.unchanged_by
        and _needs_no_second_spectrum(metric)
    ]


def slow_metrics() -> list[Metric]:
    """The other metrics: of pairs of points, of single dimensions, or with further inputs."""
    instant = instant_metrics()
    return [metric for metric in _numbers() if metric not in instant]


def _numbers() -> list[Metric]:
    """Metrics that give one number for independent points, with inputs that a chain can supply."""
    return [
        metric
        for metric in metrics.catalogue().values()
        if metric.estimate is not None
        and metric.gives != "curve"
        and ("rows" in metric.kinds or (metric.inputs and _INPUTS.issuperset(metric.inputs)))
    ]


def _needs_no_second_spectrum(metric: Metric) -> bool:
    return metric.cost == "closed form" or (metric.cost == "eigenvalues" and "shift" in metric.unchanged_by)


_INPUTS: Final = frozenset({"shrinkage_cov", "zeta"})
"""Further inputs of IsoScore*: Σ_S of the training image under the same chain, and ζ = `REPORTED_ZETA`."""

EV_KEPT: Final = 200


@dataclass(frozen=True)
class Answer:
    """Instant numbers of the image of the validation rows.

    Attributes:
        n, d: points and dimensions.
        measures: values of `instant_metrics()` by slug; None if undefined.
        ev: (k,) EV_1 … EV_k, k at most `EV_KEPT`; None if undefined.
        frozen: the task's primary metric with the run's own head; None if it cannot read the image.
        reasons: name of an undefined value → reason.
        predicted: (n,) predictions of the run's own head, as class codes or numbers; None if it cannot read the image.
        only_rounding: only rounding error is left (`FactoredCloud.only_rounding`).
    """

    n: int
    d: int
    measures: Mapping[str, float | None]
    ev: NDArray[np.float64] | None
    frozen: float | None
    reasons: Mapping[str, str]
    predicted: NDArray[Any] | None = field(repr=False, default=None)
    only_rounding: bool = False


@dataclass(frozen=True)
class Full:
    """Slow numbers that follow an `Answer`.

    Attributes:
        measures: values of `slow_metrics()` by slug; None if undefined.
        refitted: the primary metric of a head refitted on the training image.
        frozen_difference, refitted_difference: each head against itself without a transform; None if undefined.
        map: (m, 2) the two strongest principal components of the image, m = n.
        map_shares: their shares of the variance.
        refitted_predicted: (m,) predictions of the refitted head.
        reasons: name of an undefined measure → reason.
    """

    measures: Mapping[str, float | None]
    refitted: float | None
    frozen_difference: Difference | None
    refitted_difference: Difference | None
    map: NDArray[np.float32]
    map_shares: tuple[float, float]
    refitted_predicted: NDArray[Any] = field(repr=False)
    reasons: Mapping[str, str] = field(default_factory=dict)


class WhatIf(Images[Answer, Full]):
    """Chains over one cloud of a run. Thread-safe.

    Args:
        embeddings: embeddings of the cloud.
        trains: train layers in this process (imports torch); otherwise use only layers trained by a job.
    """

    def __init__(self, embeddings: Embeddings, *, trains: bool = False) -> None:
        super().__init__(embeddings.train, embeddings.validation)
        self.embeddings = embeddings
        self.trains = trains

    def _transform(self, step: Step, before: str) -> tuple[posthoc.Transform, bool]:
        """The transform of a step that moves points, and whether it is already fitted."""
        if not step.kind.needs_labels:
            return step.make(), False
        rows = self.embeddings.labelled_rows
        request = LayerRequest(self.embeddings.key, self.embeddings.cloud, before, step.params.model_dump())
        trained = layer.trained(request, rows)
        if trained is None and not self.trains:
            raise NotReadyError(request)
        return trained or step.kind(rows, **step.params.model_dump()), trained is not None

    # ------------------------------------------------------------------ its numbers

    def _answer(self, cloud: FactoredCloud) -> Answer:
        sample, values, reasons, ev = shape_of(cloud, self.embeddings.head.weight)
        frozen, predicted = None, None
        if sample.logits is None:
            head_width = self.embeddings.head.width
            reasons["frozen"] = f"the frozen head reads {head_width} numbers, the chain leaves {sample.d}"
        else:
            predicted = self.embeddings.head.decide(sample.logits + self.embeddings.head.bias)
            frozen = primary(self._metric, self.embeddings.labels, predicted)
            if frozen is None:
                reasons["frozen"] = "the metric is undefined for these predictions"
        return Answer(sample.n, sample.d, values, ev, frozen, reasons, predicted, cloud.only_rounding)

    @property
    def _metric(self) -> str:
        return str(self.embeddings.facts["primary"])

    def _stages(self, steps: Sequence[Step]) -> Generator[None, None, Full]:
        first = (yield from self.stages(())) if steps else None
        embeddings, kind = self.embeddings, self.embeddings.facts["kind"]
        cloud, answer = self.image(steps), self.answer(steps)
        start = self.answer(()).predicted
        yield
        alive = cloud.factors != 0
        if not alive.any():  # the chain removed all directions
            alive[0] = True
        points = cloud.validation[:, alive]
        refitted = linear_head(cloud.train[:, alive], embeddings.train_labels, points, kind, width=cloud.width)
        yield

        def difference(before: NDArray[Any] | None, after: NDArray[Any] | None) -> Difference | None:
            if before is None or after is None:
                return None
            return paired_difference(self._metric, embeddings.labels, before, after, kind)

        frozen_difference = difference(start, answer.predicted)
        refitted_difference = difference(first.refitted_predicted if first else refitted, refitted)
        places, shares = _map(cloud)
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
        return Full(
            measures=measures,
            refitted=primary(self._metric, embeddings.labels, refitted),
            frozen_difference=frozen_difference,
            refitted_difference=refitted_difference,
            map=_with_signs_of(places, first.map) if first else places,
            map_shares=shares,
            refitted_predicted=refitted,
            reasons=reasons,
        )


CLOUDS: Final = SharedCache(lambda engine: engine.nbytes, 1 / 8)
"""Engines of the clouds in use."""


def engine_of(key: str, cloud: Cloud) -> WhatIf:
    """The engine of a cloud, shared by all sessions. Raises `KeyError` if its embeddings are no longer cached."""
    embeddings = load(key, cloud)
    engine: WhatIf = CLOUDS.get((embeddings.folder, cloud), lambda: WhatIf(embeddings))
    return engine


def train_layer(request: LayerRequest, report: layer.Report) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Facts and arrays (`linear`, `offset`) of a layer trained after the chain `request.before`."""
    embeddings = load(request.embeddings, request.cloud)  # type: ignore[arg-type]
    image = WhatIf(embeddings, trains=True).image(chains.read(request.before))
    trained = layer.IsoLayerTransform(embeddings.labelled_rows, report=report, **request.params)
    linear, offset = trained.fit(image.image(image.train)).affine()
    return {"request": request.as_json()}, {"linear": linear, "offset": offset}


class ImageSample(Sample):
    """The validation image for `instant_metrics`, computed without materialising its points: one scaling pass and one product.

    Attributes:
        logits: (n, labels) of the head without its bias; None if it cannot read the image.
    """

    def __init__(self, cloud: FactoredCloud, weight: Matrix) -> None:
        self.points = None
        self.n, self.d = len(cloud.base.validation), cloud.width
        self.eps = float(np.finfo(np.float64).eps)
        self.inputs = {}
        self._cloud = cloud
        shift = cloud.base.validation_mean * cloud.factors
        self._mean = cloud.shift + shift
        self._points = cloud.validation
        self._points -= shift
        self._squares = np.einsum("ij,ij->i", self._points, self._points)
        reads = cloud.width == weight.shape[1]
        columns = [self._mean[:, None], *([cloud.read_by(weight)] if reads else [])]
        products = self._points @ np.concatenate(columns, axis=1)
        self._along_mean = products[:, 0]
        self.logits = products[:, 1:] + (shift @ columns[1] + weight @ cloud.mean) if reads else None

    @cached_property
    def moments(self) -> Moments | None:
        """T, F and Q, which do not depend on the orthonormal basis, and the covariance in the basis of the coordinates."""
        if self.n < 2:
            return None
        cloud = self._cloud
        alive = cloud.factors != 0
        factors = cloud.factors[alive]
        covariance = cloud.base.validation_covariance
        variances = covariance.diagonal()[alive] * factors**2
        largest = float(variances.max()) if alive.any() else 0.0
        if largest <= (self.eps * float(np.abs(self._mean).max())) ** 2:
            return Moments(self.n, self.d, 0.0, 0.0, 0.0, None, True)
        factors = factors / np.sqrt(largest)  # scores do not depend on the unit, but fourth powers may overflow
        matrix = factors[:, None] * covariance[np.ix_(alive, alive)] * factors
        squares = self._squares / largest
        return Moments(
            n=self.n,
            d=self.d,
            trace=float(matrix.diagonal().sum()),
            frobenius=sum_of_squares(matrix),
            quartic=float(squares @ squares) / (self.n - 1),
            matrix=matrix,
            collapsed=False,
        )

    @cached_property
    def directions(self) -> Directions:
        """From ‖y‖² = ‖y − ȳ‖² + 2 (y − ȳ)·ȳ + ‖ȳ‖², or from the points if that would cancel."""
        length = float(self._mean @ self._mean)
        norms = self._squares + 2 * self._along_mean + length
        if norms.min() <= 1e-4 * max(float(self._squares.max()), length):
            return Sample(self._points + self._mean).directions
        weights = 1 / np.sqrt(norms)
        return Directions(weights @ self._points + self._mean * weights.sum(), 0)


def shape_of(
    cloud: FactoredCloud, weight: Matrix
) -> tuple[ImageSample, dict[str, float | None], dict[str, str], NDArray[np.float64] | None]:
    """The validation image, its instant metrics, reasons for undefined ones, and EV_k."""
    sample = ImageSample(cloud, weight)
    values, reasons = _measured(instant_metrics(), sample)
    spectrum = sample.eigenvalues
    ev = None if spectrum is None else cumulative_shares(spectrum, min(EV_KEPT, sample.n, sample.d))
    return sample, values, reasons, ev


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
    return (centred @ top).astype(np.float32), shares


def _with_signs_of(places: NDArray[np.float32], before: NDArray[np.float32]) -> NDArray[np.float32]:
    """Choose the arbitrary signs of principal components so that the map resembles the one without transform."""
    signs = np.where((places * before).sum(axis=0) < 0, -1.0, 1.0)
    return (places * signs).astype(np.float32)


def _finite(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)
