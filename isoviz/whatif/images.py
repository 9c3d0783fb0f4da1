"""The images of one cloud under chains of transforms, kept as factors where that is possible; shared by the engines."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
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
    """What takes long, computed once for all who ask; the least recently used goes when all of it needs too much memory.

    Args:
        size_of: bytes of an entry.
        share: of the machine's memory, at most 2 GiB and at least a quarter of one.
    """

    def __init__(self, size_of: Callable[[Any], int], share: float, limit: int | None = None) -> None:
        self._size_of = size_of
        self._share = share
        self._limit = limit
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, Any] = OrderedDict()
        self._under_way: dict[Hashable, threading.Lock] = {}

    @property
    def limit(self) -> int:
        """In bytes."""
        if self._limit is None:
            import psutil

            self._limit = int(min(max(psutil.virtual_memory().total * self._share, _GIB / 4), 2 * _GIB))
        return self._limit

    def get(self, key: Hashable, make: Callable[[], Any] | None = None) -> Any:
        """The entry, made if it is not there; None if there is nothing to make it."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
            if make is None:
                return None
            under_way = self._under_way.setdefault(key, threading.Lock())
        with under_way:
            made = self.get(key)
            if made is not None:
                return made
            try:
                made = make()
            finally:
                with self._lock:
                    self._under_way.pop(key, None)
            with self._lock:
                self._entries[key] = made
                while len(self._entries) > 1 and sum(map(self._size_of, self._entries.values())) > self.limit:
                    self._entries.popitem(last=False)
        return made

    def forget(self, gone: Callable[[Any], bool]) -> None:
        """Forget the entries of such keys."""
        with self._lock:
            for key in [key for key in self._entries if gone(key)]:
                del self._entries[key]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()


IMAGES: Final = SharedCache(lambda image: image.base.nbytes, 1 / 8)
"""Images whose points were moved or rotated, of all clouds, by cloud and chain."""


class NotReadyError(Exception):
    """The image takes longer than a slider's move.

    Attributes:
        request: for a layer that a process has to train first, if it is that.
    """

    def __init__(self, request: LayerRequest | None = None) -> None:
        super().__init__("the image is not ready")
        self.request = request


class Images:
    """The image of two splits under a chain. May be used from several threads.

    Args:
        train: (n, d) points that transforms are fitted on.
        validation: (m, d) points whose numbers are shown.
    """

    def __init__(self, train: NDArray[Any], validation: NDArray[Any]) -> None:
        self.train = train
        self.validation = validation
        self.resolution = resolution(train)
        self._start: FactoredCloud | None = None
        self._images = object()  # in the keys of IMAGES: entries of an engine that is gone match no other

    def image(self, steps: Sequence[Step], *, build: bool = True) -> FactoredCloud:
        """The image under a chain, each step fitted on the training image of those before it.

        Args:
            build: compute what takes long; otherwise NotReadyError.

        Raises:
            InputError: a step cannot be fitted here (field `chain`).
            NotReadyError: a layer has to be trained first, or, without `build`, something has to be computed.
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
        """The chain as one matrix; raises as `image`, and `InputError` for a step that is not affine."""
        points = np.asarray(self.train, np.float64)
        whole = posthoc.Affine(np.ones(points.shape[1]), np.zeros(points.shape[1]))
        for number, step in enumerate(steps):
            transform, fitted = self._transform(step, chains.write(steps[:number]))
            try:
                part = require_affine(transform if fitted else transform.fit(points))
            except InputError as error:
                raise InputError(f"{step.title}: {error}", field="chain") from None
            whole, points = whole.then(part), part.of_points(points)
        return whole

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
        if cloud.knows(coordinates):
            return cloud.along(coordinates)

        return self._stored(f"{before}|{coordinates}", lambda: cloud.along(coordinates), build)

    def _transform(self, step: Step, before: str) -> tuple[posthoc.Transform, bool]:
        """The transform of a step that moves points, and whether it is fitted already."""
        if step.kind.needs_labels:
            raise InputError("it is trained on the labels and the head of a run", field="chain")
        return step.make(), False

    def _stored(self, key: str, make: Callable[[], FactoredCloud], build: bool) -> FactoredCloud:
        image: FactoredCloud | None = IMAGES.get((self._images, key), make if build else None)
        if image is None:
            raise NotReadyError
        return image


def _moved(transform: posthoc.Transform, cloud: FactoredCloud, fitted: bool) -> FactoredCloud:
    """A step that cannot act on factors: every point is taken through it."""
    train, validation = cloud.image(cloud.train), cloud.image(cloud.validation)
    if not fitted:
        transform.fit(train)
    train, validation = (np.asarray(transform.transform(points)) for points in (train, validation))
    return replace(FactoredCloud.of_points(train, validation, cloud.resolution), only_rounding=cloud.only_rounding)
