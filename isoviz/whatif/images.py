"""Images of a cloud under chains of transforms: the cache that all sessions share, and what measures them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.cloud import draw
from isoviz.metrics.moments import Moments, prefers_gram, sum_of_squares
from isoviz.metrics.sample import Directions, Sample
from isoviz.posthoc.factored import FactoredCloud, Matrix
from isoviz.readouts.image import Image
from isoviz.readouts.isotropy import influence_of
from isoviz.whatif.request import LayerRequest

_GIB: Final = 1 << 30
JUDGED: Final = 512
"""Most rows from which the interval of a ratio of scores is computed, so that it costs milliseconds."""
FEW: Final = 64
"""From fewer rows the unbiased score may have an interval wider than its range (`reading_of`)."""


class SharedCache:
    """Cache of slow results, shared by all sessions; the least recently used entry is removed first.

    Threads that ask for the same missing entry wait for one computation and share its result or its error.

    Args:
        size_of: returns an entry's size.
        share: without a limit, the share of the machine's memory in bytes, between 0.25 and 2 GiB.
        limit: largest sum of sizes.
    """

    def __init__(
        self, size_of: Callable[[Any], int] = lambda _: 1, share: float = 0.0, limit: int | None = None
    ) -> None:
        self._size_of = size_of
        self._share = share
        self._limit = limit
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, Any] = OrderedDict()
        self._under_way: dict[Hashable, Future[Any]] = {}

    @property
    def limit(self) -> int:
        """Largest sum of sizes."""
        if self._limit is None:
            import psutil

            self._limit = int(min(max(psutil.virtual_memory().total * self._share, _GIB / 4), 2 * _GIB))
        return self._limit

    def get(self, key: Hashable, make: Callable[[], Any] | None = None) -> Any:
        """The entry, made by `make` if missing; None without `make`. Raises what `make` raises."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
            if make is None:
                return None
            waiting = self._under_way.get(key)
            if waiting is None:
                future = self._under_way[key] = Future()
        if waiting is not None:
            return waiting.result()
        try:
            entry = make()
        except BaseException as error:
            with self._lock:
                del self._under_way[key]
            future.set_exception(error)
            raise
        with self._lock:
            del self._under_way[key]
            self._entries[key] = entry
            while len(self._entries) > 1 and sum(map(self._size_of, self._entries.values())) > self.limit:
                self._entries.popitem(last=False)
        future.set_result(entry)
        return entry

    def forget(self, gone: Callable[[Any], bool]) -> None:
        """Remove the entries whose key satisfies `gone`."""
        with self._lock:
            for key in [key for key in self._entries if gone(key)]:
                del self._entries[key]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()


IMAGES: Final = SharedCache(lambda image: image.base.nbytes, 1 / 8)
"""Images of all clouds whose points were moved or rotated, by cloud and chain."""


class NotReadyError(Exception):
    """The image is not computed yet and takes longer than a slider's move.

    Attributes:
        request: request for a layer that must be trained first, if any.
    """

    def __init__(self, request: LayerRequest | None = None) -> None:
        super().__init__("the image is not ready")
        self.request = request


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
        columns = [self._mean[:, None], *([cloud.logit_weights(weight)] if reads else [])]
        products = self._points @ np.concatenate(columns, axis=1)
        self._along_mean = products[:, 0]
        self.logits = products[:, 1:] + (shift @ columns[1] + weight @ cloud.mean) if reads else None

    @cached_property
    def moments(self) -> Moments | None:
        """T, F and Q, which do not depend on the orthonormal basis, and the covariance in the basis of the coordinates."""
        if self.n < 2:
            return None
        alive, unit, matrix = self._scaled
        if unit == 0:
            return Moments(self.n, self.d, 0.0, 0.0, 0.0, None, True)
        squares = self._squares / unit**2
        moments = Moments(
            n=self.n,
            d=self.d,
            trace=float(matrix.diagonal().sum()),
            frobenius=sum_of_squares(matrix),
            quartic=float(squares @ squares) / (self.n - 1),
            matrix=matrix,
            collapsed=False,
        )
        if self.n >= FEW:
            return moments
        x = self._points[:, alive] / unit  # an interval, without which so few points say little, needs them
        gram = x @ x.T / (self.n - 1) if prefers_gram(*x.shape) else matrix
        return replace(moments, matrix=gram, centred=x)

    @cached_property
    def _scaled(self) -> tuple[NDArray[np.bool_], float, Matrix]:
        """Which coordinates have a factor, the largest standard deviation (0 if it is rounding), and the covariance in that unit:
        scores do not depend on it, but fourth powers may overflow."""
        cloud = self._cloud
        alive = cloud.factors != 0
        factors = cloud.factors[alive]
        covariance = cloud.base.validation_covariance
        variances = covariance.diagonal()[alive] * factors**2
        largest = float(variances.max()) if alive.any() else 0.0
        if largest <= (self.eps * float(np.abs(self._mean).max())) ** 2:
            return alive, 0.0, covariance
        unit = float(np.sqrt(largest))
        factors = factors / unit
        return alive, unit, factors[:, None] * covariance[np.ix_(alive, alive)] * factors

    @property
    def influence(self) -> Matrix | None:
        """Of the same rows of every image, see `isoviz.readouts.isotropy`; None if it is undefined."""
        alive, unit, matrix = self._scaled
        if self.n < 2 or unit == 0:
            return None
        rows = draw(self.n, JUDGED)
        return influence_of(self._points[rows][:, alive] / unit, self._squares[rows] / unit**2, matrix, self.d)

    @cached_property
    def directions(self) -> Directions:
        """From ‖y‖² = ‖y − ȳ‖² + 2 (y − ȳ)·ȳ + ‖ȳ‖², or from the points if that would cancel."""
        length = float(self._mean @ self._mean)
        norms = self._squares + 2 * self._along_mean + length
        if norms.min() <= 1e-4 * max(float(self._squares.max()), length):
            return Sample(self._points + self._mean).directions
        weights = 1 / np.sqrt(norms)
        return Directions(weights @ self._points + self._mean * weights.sum(), 0)


def image_of(cloud: FactoredCloud) -> Image:
    """The image for read-outs, rotated into the base's coordinates, which changes neither cosines nor dot products."""
    alive: Any = cloud.factors != 0
    if alive.all():
        alive = slice(None)  # a view, not a copy
    shift = cloud.shift[alive]
    points = cloud.base.validation[:, alive] * cloud.factors[alive]
    points += shift
    # squared length of the mean outside these coordinates
    remainder = float(cloud.mean @ cloud.mean) - float(shift @ shift)
    if remainder > 1e-12 * float(cloud.mean @ cloud.mean):
        points = np.column_stack([points, np.full(len(points), np.sqrt(remainder))])
    if points.shape[1] == 0:
        points = np.zeros((len(points), 1))
    return Image(points)
