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
from isoviz.metrics.moments import Moments, sum_of_squares
from isoviz.metrics.sample import Sample
from isoviz.metrics.scores import plug_in_estimate, ratio_estimate, unbiased_estimate
from isoviz.metrics.spectrum import cumulative_shares, effective_rank_of, eigenvalues
from isoviz.whatif import chains, frames, layer, slower
from isoviz.whatif.bases import Matrix, base_of
from isoviz.whatif.chains import Step
from isoviz.whatif.embeddings import Embeddings
from isoviz.whatif.frames import Frame
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
        hollow: whether nothing but rounding is left (`frames.Frame.hollow`).
    """

    n: int
    d: int
    measures: Mapping[str, float | None]
    ev: NDArray[np.float64] | None
    frozen: float | None
    reasons: Mapping[str, str]
    predicted: NDArray[Any] | None = field(repr=False, default=None)
    hollow: bool = False


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
        self._bases: OrderedDict[str, Frame] = OrderedDict()
        self._answers: OrderedDict[str, Answer] = OrderedDict()
        self._fulls: OrderedDict[str, Full] = OrderedDict()
        self._lock = threading.RLock()

    # ------------------------------------------------------------------ the image

    def frame(self, steps: Sequence[Step], *, build: bool = True) -> Frame:
        """The image under a chain, each step fitted on the training image of those before it.

        Args:
            build: compute what takes long; otherwise NotReadyError.

        Raises:
            InputError: a step cannot be fitted here (field `chain`).
            NotReadyError: a layer has to be trained first, or, without `build`, something has to be computed.
        """
        frame = self._kept("", self._start, build)
        for number, step in enumerate(steps):
            try:
                frame = self._advanced(frame, step, chains.write(steps[:number]), build)
            except InputError as error:
                raise InputError(f"{step.title}: {error}", field="chain") from None
        return frame

    def _start(self) -> Frame:
        base, mean = base_of(self.embeddings.train.astype(np.float64), self.embeddings.validation.astype(np.float64))
        return frames.start(base.warm(), mean)

    def _advanced(self, frame: Frame, step: Step, before: str, build: bool) -> Frame:
        if step.slug == chains.LAYER:
            request = self.request(step, before)
            trained = layer.find(request)
            if trained is None and not self.trains:
                raise NotReadyError(request)
            transform = trained or self.embeddings.isolayer(**step.params.model_dump())
            return self._kept(f"{before}~{step.text}", lambda: _through(transform, frame, trained is None), build)
        if step.slug == "cluster_based":
            return self._kept(f"{before}~{step.text}", lambda: _through(step.make(), frame, True), build)
        wanted = frames.needs(frame, step)
        if wanted is not None:
            turn = frames.principal if wanted == "principal" else frames.plain
            known, now = frames.is_cheap(frame, wanted), frame
            frame = turn(now) if known else self._kept(f"{before}|{wanted}", lambda: _warm(turn(now)), build)
        return frames.advance(frame, step, self.resolution)

    def request(self, step: Step, before: str) -> LayerRequest:
        """What a process is asked for to train that layer."""
        found = self.embeddings
        return LayerRequest(found.key, found.cloud, before, step.params.model_dump())

    def _kept(self, key: str, make: Callable[[], Frame], build: bool) -> Frame:
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
        found = self._answer(self.frame(steps, build=build))
        with self._lock:
            self._answers[text] = found
            while len(self._answers) > 256:
                self._answers.popitem(last=False)
        return found

    def _answer(self, frame: Frame) -> Answer:
        points = frame.validation
        n, d = len(points), frame.width
        reasons: dict[str, str] = {}
        ev: NDArray[np.float64] | None = None
        estimates = dict.fromkeys(MEASURES, undefined(too_few(n)))
        if n >= 2:
            moments = _moments(frame)
            spectrum = None if moments.collapsed or moments.matrix is None else eigenvalues(moments.matrix)
            estimates = {
                "isoscore": plug_in_estimate(moments),
                "isoscore_unbiased": unbiased_estimate(moments),
                "participation_ratio": ratio_estimate(moments),
                "effective_rank": undefined("all points are equal")
                if spectrum is None
                else effective_rank_of(spectrum),
                "mean_cosine": mean_cosine_estimate(Sample(points + frame.shift)),
            }
            if spectrum is not None:
                ev = cumulative_shares(spectrum, min(EV_KEPT, n, d))
        predicted, why = self._predicted(frame, points)
        frozen = None if predicted is None else primary(self._metric, self.embeddings.labels, predicted)
        if frozen is None:
            reasons["frozen"] = why or "the metric is undefined for these predictions"
        reasons |= {name: str(found.problem) for name, found in estimates.items() if found.problem}
        values = {name: _value(found) for name, found in estimates.items()}
        return Answer(n, d, values, ev, frozen, reasons, predicted, frame.hollow)

    @property
    def _metric(self) -> str:
        return str(self.embeddings.facts["primary"])

    def _predicted(self, frame: Frame, points: Matrix) -> tuple[NDArray[Any] | None, str | None]:
        head = self.embeddings.head
        if frame.width != head.width:
            return None, f"the frozen head reads {head.width} numbers, the chain leaves {frame.width}"
        logits = points @ frame.read_by(head.weight) + (head.weight @ frame.offset + head.bias)
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
        frame, answer = self.frame(steps), self.answer(steps)
        alive = frame.factors != 0
        train, points = frame.train[:, alive], frame.validation[:, alive]
        if not alive.any():  # everything was removed
            train, points = frame.train[:, :1], frame.validation[:, :1]
        again = refit(train, found.train_labels, points, kind, width=frame.width)
        refitted = primary(self._metric, found.labels, again)
        measures, reasons = slower.measures(frame, points)
        places, shares = _map(frame)
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


def _through(transform: posthoc.Transform, frame: Frame, fit: bool) -> Frame:
    """A step that is no closed form of the covariance: the points themselves are taken through it."""
    train, validation = frame.image(frame.train), frame.image(frame.validation)
    if fit:
        transform.fit(train)
    base, mean = base_of(np.asarray(transform.transform(train)), np.asarray(transform.transform(validation)))
    return replace(frames.start(base.warm(), mean), hollow=frame.hollow)


def _warm(frame: Frame) -> Frame:
    frame.base.warm()
    return frame


def _moments(frame: Frame) -> Moments:
    """T, F and Q of the validation image; all of them are the same in every orthonormal basis."""
    base = frame.base
    n, d = len(base.validation), frame.width
    alive = frame.factors != 0
    factors = frame.factors[alive]
    variances = base.validation_covariance.diagonal()[alive] * factors**2
    largest = float(variances.max()) if alive.any() else 0.0
    mean = frame.shift + base.validation_mean * frame.factors
    eps = float(np.finfo(np.float64).eps)
    if largest <= (eps * float(np.abs(mean).max())) ** 2:
        return Moments(n, d, 0.0, 0.0, 0.0, None, True)
    factors = factors / np.sqrt(largest)  # scores do not depend on the unit, their fourth powers do
    matrix = factors[:, None] * base.validation_covariance[np.ix_(alive, alive)] * factors
    squares = base.validation_squares @ np.where(frame.factors != 0, frame.factors / np.sqrt(largest), 0.0) ** 2
    return Moments(
        n=n,
        d=d,
        trace=float(matrix.diagonal().sum()),
        frobenius=sum_of_squares(matrix),
        quartic=float(squares @ squares) / (n - 1),
        matrix=matrix,
        collapsed=False,
    )


def _map(frame: Frame) -> tuple[NDArray[np.float32], tuple[float, float]]:
    covariance = frame.validation_covariance
    values, directions = np.linalg.eigh(covariance)
    top = directions[:, ::-1][:, :2]
    if top.shape[1] < 2:
        top = np.hstack([top, np.zeros((len(top), 1))])
    total = float(values.sum())
    centred = frame.validation - frame.base.validation_mean * frame.factors
    both = [*values[::-1][:2], 0.0][:2]
    shares = (both[0] / total, both[1] / total) if total > 0 else (0.0, 0.0)
    return (centred @ top).astype(np.float32), shares


def _like(places: NDArray[np.float32], before: NDArray[np.float32]) -> NDArray[np.float32]:
    """Signs of principal components are arbitrary: those that resemble the map before are taken."""
    signs = np.where((places * before).sum(axis=0) < 0, -1.0, 1.0)
    return (places * signs).astype(np.float32)


def _value(found: Estimate) -> float | None:
    return None if found.problem or not np.isfinite(found.value) else float(found.value)
