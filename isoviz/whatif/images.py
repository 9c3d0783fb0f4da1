"""Images of a cloud under chains of transforms, stored as factors if possible, and the cache that all sessions share."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz import posthoc
from isoviz.errors import InputError
from isoviz.metrics.cloud import resolution
from isoviz.posthoc.export import require_affine
from isoviz.posthoc.factored import FactoredCloud, Kind
from isoviz.whatif import chains
from isoviz.whatif.chains import Step
from isoviz.whatif.request import LayerRequest

_GIB: Final = 1 << 30


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


class Images:
    """The images of two splits under chains. Thread-safe.

    Args:
        train: (n, d) points that transforms are fitted on.
        validation: (m, d) points that are measured.
    """

    def __init__(self, train: NDArray[Any], validation: NDArray[Any]) -> None:
        self.train = train
        self.validation = validation
        self.resolution = resolution(train)
        self._start: FactoredCloud | None = None
        self._images = object()  # part of the keys of IMAGES: unique to these splits

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
            self._start = self._stored("", self._from_points, build)
        cloud = self._start
        for number, step in enumerate(steps):
            try:
                cloud = self._advanced(cloud, step, chains.write(steps[:number]), build)
            except InputError as error:
                raise InputError(f"{step.title}: {error}", field="chain") from None
        return cloud

    def affine(self, steps: Sequence[Step]) -> posthoc.Affine:
        """The chain as one matrix. Raises like `image`, and `InputError` for a step that is not affine."""
        points = np.asarray(self.train, np.float64)
        composed = posthoc.Affine(np.ones(points.shape[1]), np.zeros(points.shape[1]))
        for number, step in enumerate(steps):
            transform, fitted = self._transform(step, chains.write(steps[:number]))
            try:
                step_map = require_affine(transform if fitted else transform.fit(points))
            except InputError as error:
                raise InputError(f"{step.title}: {error}", field="chain") from None
            composed, points = composed.then(step_map), step_map.of_points(points)
        return composed

    def _from_points(self) -> FactoredCloud:
        train, validation = (np.asarray(split, np.float64) for split in (self.train, self.validation))
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
        if cloud.has_cached(coordinates):
            return cloud.along(coordinates)

        return self._stored(f"{before}|{coordinates}", lambda: cloud.along(coordinates), build)

    def _transform(self, step: Step, before: str) -> tuple[posthoc.Transform, bool]:
        """The transform of a step that moves points, and whether it is fitted already."""
        return step.make(), False

    def _stored(self, key: str, make: Callable[[], FactoredCloud], build: bool) -> FactoredCloud:
        image: FactoredCloud | None = IMAGES.get((self._images, key), make if build else None)
        if image is None:
            raise NotReadyError
        return image


def _moved(transform: posthoc.Transform, cloud: FactoredCloud, fitted: bool) -> FactoredCloud:
    """Apply a step that cannot act on factors to every point."""
    train, validation = cloud.image(cloud.train), cloud.image(cloud.validation)
    if not fitted:
        transform.fit(train)
    train, validation = (np.asarray(transform.transform(points)) for points in (train, validation))
    return replace(FactoredCloud.of_points(train, validation, cloud.resolution), only_rounding=cloud.only_rounding)
