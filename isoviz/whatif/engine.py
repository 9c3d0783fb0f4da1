"""What a chain does to a run's embeddings: the closed-form numbers at once, and all the others when there is time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz import posthoc
from isoviz.errors import InputError
from isoviz.metrics.cloud import Estimate, resolution, too_few, undefined
from isoviz.metrics.cosine import mean_cosine_estimate
from isoviz.metrics.moments import (
    Moments,
    eigenvalues,
    plug_in_estimate,
    ratio_estimate,
    sum_of_squares,
    unbiased_estimate,
)
from isoviz.metrics.sample import Sample
from isoviz.metrics.spectrum import cumulative_shares, effective_rank_of
from isoviz.posthoc.factored import FactoredCloud, Kind, Matrix
from isoviz.whatif import chains, layer, slower
from isoviz.whatif.chains import Step
from isoviz.whatif.embeddings import Embeddings, load
from isoviz.whatif.heads import Difference, paired_difference, primary, refit
from isoviz.whatif.request import LayerRequest

MEASURES: Final = ("isoscore", "isoscore_unbiased", "participation_ratio", "effective_rank", "mean_cosine")
"""Closed forms, in the order in which they are shown."""

EV_KEPT: Final = 200
_BASES_KEPT: Final = 5


class NotReadyError(Exception):
    """The image takes longer than a slider's move.

    Attributes:
        request: for a layer that a process has to train first, if it is that.
    """

    def __init__(self, request: LayerRequest | None = None) -> None:
        super().__init__("the image is not ready")
        self.request = request


@dataclass(frozen=True)
class Answer:
    """What is known at once about the image of the validation rows.

    Attributes:
        n, d: its points and dimensions.
        measures: of `MEASURES`; None where undefined.
        ev: EV_1 … EV_k, k at most `EV_KEPT` (k,); None where undefined.
        frozen: the task's primary metric when the run's own head reads the image; None if it cannot.
        reasons: name of what is None → why.
        predicted: (n,) class codes, or numbers, that the run's own head gives; None if it cannot read the image.
        only_rounding: whether nothing but rounding is left (`FactoredCloud.only_rounding`).
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
    """What follows an answer.

    Attributes:
        measures: of `slower.SLOWER`; None where undefined.
        refitted: the primary metric of a head fitted anew on the training image.
        frozen_difference, refitted_difference: from no transform, the latter from a head refitted there; None if undefined.
        map: (m, 2) the two strongest principal components of the image, m = n.
        map_shares: the share of the variance that each of them holds.
        refitted_predicted: (m,) what the refitted head gives.
        reasons: name of a measure that is None → why.
    """

    measures: Mapping[str, float | None]
    refitted: float | None
    frozen_difference: Difference | None
    refitted_difference: Difference | None
    map: NDArray[np.float32]
    map_shares: tuple[float, float]
    refitted_predicted: NDArray[Any] = field(repr=False)
    reasons: Mapping[str, str] = field(default_factory=dict)


class WhatIf:
    """Chains over one cloud of a run. May be used from several threads.

    Args:
        found: the embeddings.
        trains: train layers here and now (which imports torch); otherwise only those that a process has trained are used.
    """

    def __init__(self, found: Embeddings, *, trains: bool = False) -> None:
        self.embeddings = found
        self.trains = trains
        self.resolution = resolution(found.train)
        self._bases: OrderedDict[str, FactoredCloud] = OrderedDict()
        self._answers: OrderedDict[str, Answer] = OrderedDict()
        self._fulls: OrderedDict[str, Full] = OrderedDict()
        self._lock = threading.RLock()

    # ------------------------------------------------------------------ the image

    def image(self, steps: Sequence[Step], *, build: bool = True) -> FactoredCloud:
        """The image under a chain, each step fitted on the training image of those before it.

        Args:
            build: compute what takes long; otherwise NotReadyError.

        Raises:
            InputError: a step cannot be fitted here (field `chain`).
            NotReadyError: a layer has to be trained first, or, without `build`, something has to be computed.
        """
        cloud = self._stored("", self._start, build)
        for number, step in enumerate(steps):
            try:
                cloud = self._advanced(cloud, step, chains.write(steps[:number]), build)
            except InputError as error:
                raise InputError(f"{step.title}: {error}", field="chain") from None
        return cloud

    def _start(self) -> FactoredCloud:
        train, validation = (
            np.asarray(split, np.float64) for split in (self.embeddings.train, self.embeddings.validation)
        )
        return FactoredCloud.of_points(train, validation, self.resolution)

    def _advanced(self, cloud: FactoredCloud, step: Step, before: str, build: bool) -> FactoredCloud:
        coordinates = step.kind.coordinates
        if coordinates is None:
            transform, fitted = self._transform(step, before)
            return self._stored(f"{before}~{step.text}", lambda: _moved(transform, cloud, fitted), build)
        if not cloud.has(coordinates):
            cloud = self._along(coordinates, cloud, before, build)
        return step.make().act(cloud)

    def _along(self, coordinates: Kind, cloud: FactoredCloud, before: str, build: bool) -> FactoredCloud:
        if cloud.knows(coordinates):
            return cloud.along(coordinates)

        def rotate() -> FactoredCloud:
            rotated = cloud.along(coordinates)
            rotated.base.warm()
            return rotated

        return self._stored(f"{before}|{coordinates}", rotate, build)

    def _transform(self, step: Step, before: str) -> tuple[posthoc.Transform, bool]:
        """The transform of a step that moves points, and whether it is fitted already."""
        if not step.kind.needs_labels:
            return step.make(), False
        rows = self.embeddings.labelled_rows
        request = LayerRequest(self.embeddings.key, self.embeddings.cloud, before, step.params.model_dump())
        trained = layer.trained(request, rows)
        if trained is None and not self.trains:
            raise NotReadyError(request)
        return trained or step.kind(rows, **step.params.model_dump()), trained is not None

    def _stored(self, key: str, make: Callable[[], FactoredCloud], build: bool) -> FactoredCloud:
        with self._lock:
            if key in self._bases:
                self._bases.move_to_end(key)
                return self._bases[key]
        if not build:
            raise NotReadyError
        made = make()
        with self._lock:
            self._bases[key] = made
            while len(self._bases) > _BASES_KEPT:
                del self._bases[next(name for name in self._bases if name)]  # the cloud itself stays
        return made

    # ------------------------------------------------------------------ its numbers

    def answer(self, steps: Sequence[Step], *, build: bool = True) -> Answer:
        """The closed forms; with `build=False` NotReadyError where the image takes long."""
        text = chains.write(steps)
        with self._lock:
            if text in self._answers:
                return self._answers[text]
        found = self._answer(self.image(steps, build=build))
        with self._lock:
            self._answers[text] = found
            while len(self._answers) > 256:
                self._answers.popitem(last=False)
        return found

    def _answer(self, cloud: FactoredCloud) -> Answer:
        points = cloud.validation
        n, d = len(points), cloud.width
        reasons: dict[str, str] = {}
        ev: NDArray[np.float64] | None = None
        estimates = dict.fromkeys(MEASURES, undefined(too_few(n)))
        if n >= 2:
            moments = _moments(cloud)
            spectrum = None if moments.collapsed or moments.matrix is None else eigenvalues(moments.matrix)
            estimates = {
                "isoscore": plug_in_estimate(moments),
                "isoscore_unbiased": unbiased_estimate(moments),
                "participation_ratio": ratio_estimate(moments),
                "effective_rank": undefined("all points are equal")
                if spectrum is None
                else effective_rank_of(spectrum),
                "mean_cosine": mean_cosine_estimate(Sample(points + cloud.shift)),
            }
            if spectrum is not None:
                ev = cumulative_shares(spectrum, min(EV_KEPT, n, d))
        predicted, why = self._predicted(cloud, points)
        frozen = None if predicted is None else primary(self._metric, self.embeddings.labels, predicted)
        if frozen is None:
            reasons["frozen"] = why or "the metric is undefined for these predictions"
        reasons |= {name: str(found.problem) for name, found in estimates.items() if found.problem}
        values = {name: _value(found) for name, found in estimates.items()}
        return Answer(n, d, values, ev, frozen, reasons, predicted, cloud.only_rounding)

    @property
    def _metric(self) -> str:
        return str(self.embeddings.facts["primary"])

    def _predicted(self, cloud: FactoredCloud, points: Matrix) -> tuple[NDArray[Any] | None, str | None]:
        head = self.embeddings.head
        if cloud.width != head.width:
            return None, f"the frozen head reads {head.width} numbers, the chain leaves {cloud.width}"
        logits = points @ cloud.read_by(head.weight) + (head.weight @ cloud.mean + head.bias)
        return head.decide(logits), None

    def full(self, steps: Sequence[Step]) -> Full:
        """What takes longer: the measures of `slower`, the refitted head, intervals, the map."""
        text = chains.write(steps)
        with self._lock:
            if text in self._fulls:
                return self._fulls[text]
        found = self._full(steps)
        with self._lock:
            self._fulls[text] = found
            while len(self._fulls) > 64:
                self._fulls.popitem(last=False)
        return found

    def known(self, steps: Sequence[Step]) -> Full | None:
        """`full`, if it was asked for before."""
        with self._lock:
            return self._fulls.get(chains.write(steps))

    def _full(self, steps: Sequence[Step]) -> Full:
        found, kind = self.embeddings, self.embeddings.facts["kind"]
        cloud, answer = self.image(steps), self.answer(steps)
        alive = cloud.factors != 0
        train, points = cloud.train[:, alive], cloud.validation[:, alive]
        if not alive.any():  # everything was removed
            train, points = cloud.train[:, :1], cloud.validation[:, :1]
        again = refit(train, found.train_labels, points, kind, width=cloud.width)
        refitted = primary(self._metric, found.labels, again)
        measures, reasons = slower.measures(cloud, points)
        places, shares = _map(cloud)
        start = self.answer(()).predicted
        first = self.full(()).refitted_predicted if steps else again

        def difference(before: NDArray[Any] | None, after: NDArray[Any] | None) -> Difference | None:
            if before is None or after is None:
                return None
            return paired_difference(self._metric, found.labels, before, after, kind)

        if steps:
            places = _like(places, self.full(()).map)
        return Full(
            measures=measures,
            refitted=refitted,
            frozen_difference=difference(start, answer.predicted),
            refitted_difference=difference(first, again),
            map=places,
            map_shares=shares,
            refitted_predicted=again,
            reasons=reasons,
        )


def train_layer(request: LayerRequest, report: layer.Report) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Facts and arrays (`linear`, `offset`) of a layer that is trained after the chain `request.before`."""
    embeddings = load(request.embeddings, request.cloud)  # type: ignore[arg-type]
    image = WhatIf(embeddings, trains=True).image(chains.read(request.before))
    trained = layer.IsoLayerTransform(embeddings.labelled_rows, report=report, **request.params)
    linear, offset = trained.fit(image.image(image.train)).affine()
    return {"request": request.as_json()}, {"linear": linear, "offset": offset}


def _moved(transform: posthoc.Transform, cloud: FactoredCloud, fitted: bool) -> FactoredCloud:
    """A step that cannot act on factors: every point is taken through it."""
    train, validation = cloud.image(cloud.train), cloud.image(cloud.validation)
    if not fitted:
        transform.fit(train)
    train, validation = (np.asarray(transform.transform(points)) for points in (train, validation))
    return replace(FactoredCloud.of_points(train, validation, cloud.resolution), only_rounding=cloud.only_rounding)


def _moments(cloud: FactoredCloud) -> Moments:
    """T, F and Q of the validation image; all of them are the same in every orthonormal basis."""
    base = cloud.base
    n, d = len(base.validation), cloud.width
    alive = cloud.factors != 0
    factors = cloud.factors[alive]
    variances = base.validation_covariance.diagonal()[alive] * factors**2
    largest = float(variances.max()) if alive.any() else 0.0
    mean = cloud.shift + base.validation_mean * cloud.factors
    eps = float(np.finfo(np.float64).eps)
    if largest <= (eps * float(np.abs(mean).max())) ** 2:
        return Moments(n, d, 0.0, 0.0, 0.0, None, True)
    factors = factors / np.sqrt(largest)  # scores do not depend on the unit, their fourth powers do
    matrix = factors[:, None] * base.validation_covariance[np.ix_(alive, alive)] * factors
    squares = base.validation_squares @ np.where(cloud.factors != 0, cloud.factors / np.sqrt(largest), 0.0) ** 2
    return Moments(
        n=n,
        d=d,
        trace=float(matrix.diagonal().sum()),
        frobenius=sum_of_squares(matrix),
        quartic=float(squares @ squares) / (n - 1),
        matrix=matrix,
        collapsed=False,
    )


def _map(cloud: FactoredCloud) -> tuple[NDArray[np.float32], tuple[float, float]]:
    covariance = cloud.validation_covariance
    values, directions = np.linalg.eigh(covariance)
    top = directions[:, ::-1][:, :2]
    if top.shape[1] < 2:
        top = np.hstack([top, np.zeros((len(top), 1))])
    total = float(values.sum())
    centred = cloud.validation - cloud.base.validation_mean * cloud.factors
    both = [*values[::-1][:2], 0.0][:2]
    shares = (both[0] / total, both[1] / total) if total > 0 else (0.0, 0.0)
    return (centred @ top).astype(np.float32), shares


def _like(places: NDArray[np.float32], before: NDArray[np.float32]) -> NDArray[np.float32]:
    """Signs of principal components are arbitrary: those that resemble the map before are taken."""
    signs = np.where((places * before).sum(axis=0) < 0, -1.0, 1.0)
    return (places * signs).astype(np.float32)


def _value(found: Estimate) -> float | None:
    return None if found.problem or not np.isfinite(found.value) else float(found.value)
