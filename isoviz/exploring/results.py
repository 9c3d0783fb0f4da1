"""Views on disk, and reading them."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz import metrics
from isoviz.exploring import points
from isoviz.jobs.results import ARRAYS, Result, ResultStore
from isoviz.metrics.record import CloudRecord
from isoviz.tables.arrays import mapped_tensor

if TYPE_CHECKING:
    import pandas as pd

RANDOM: Final = "random weights: "
"""Start of the warning of a view with random weights."""
STORE: Final = ResultStore("views")


def array_name(layer: int, pooling: str, what: str) -> str:
    """Name of an array in the file: `ev`, `sigma`, `mean`, `cosine`, `prompts`, `cloud`, `correlation` or `order` of one cloud."""
    return f"{layer}.{pooling}.{what}"


@dataclass(frozen=True)
class ViewResult(Result):
    """A view; `facts` come from `isoviz.exploring.measuring.compute`: `rows`, `depth`, `entries` (one per layer × pooling), …
    Entries do not contain `pending` measures yet.
    """

    @property
    def depth(self) -> int:
        """Number of the last layer; 0 is the embedding output."""
        return int(self.facts["depth"])

    @property
    def random_weights(self) -> bool:
        """Whether the encoder has random weights, because its checkpoint does not fit it."""
        return any(note.startswith(RANDOM) for note in self.facts.get("warnings", ()))

    @functools.cached_property
    def entries(self) -> list[CloudRecord]:
        """The records of all clouds, from `isoviz.models.profile.profile`."""
        return [CloudRecord.model_validate(entry) for entry in self.facts["entries"]]

    @functools.cached_property
    def together(self) -> CloudRecord | None:
        """The record of all layers' tokens as one cloud, see `isoviz.exploring.shrinkage.together`; None while pending or if it could
        not be computed (`facts["shrinkage"]["reason"]`)."""
        record = self.facts["layers"]
        return None if record is None else CloudRecord.model_validate(record)

    @property
    def poolings(self) -> list[str]:
        """Poolings in display order."""
        return list(dict.fromkeys(entry.pooling for entry in self.entries))

    def entry(self, layer: int, pooling: str) -> CloudRecord:
        """The record of one cloud. Raises `KeyError` if it does not exist."""
        for entry in self.entries:
            if (entry.layer, entry.pooling) == (layer, pooling):
                return entry
        raise KeyError((layer, pooling))

    @contextlib.contextmanager
    def _tensors(self) -> Iterator[Any]:
        from safetensors import safe_open

        with safe_open(self.folder / ARRAYS, framework="np") as file:
            yield file

    def array(self, layer: int, pooling: str, what: str) -> NDArray[Any] | None:
        """One array of one cloud, see `array_name`; None if it was not stored."""
        name = array_name(layer, pooling, what)
        with self._tensors() as file:
            return file.get_tensor(name) if name in file.keys() else None  # noqa: SIM118 (no mapping)

    def stored_points(self, layer: int, pooling: str) -> int:
        """Number of stored points of a cloud, without reading them. Raises `KeyError` if the cloud does not exist."""
        return len(self.mapped(layer, pooling))

    def points(self, layer: int, pooling: str) -> NDArray[np.float32]:
        """The stored points of a cloud, (m, d), one per row of `table(pooling)`. Raises `KeyError` if the cloud does not exist."""
        return np.array(self.mapped(layer, pooling), np.float32)

    def mapped(self, layer: int, pooling: str) -> NDArray[np.floating]:
        """The same points memory-mapped, as float16 or float32."""
        return mapped_tensor(self.folder / ARRAYS, array_name(layer, pooling, "cloud"))

    def points_in_matrix(self, layer: int, pooling: str) -> int:
        """Number of points behind `matrix`."""
        if "figure_points" in self.facts:
            return int(self.facts["figure_points"])
        if layer != self.depth:
            return self.stored_points(layer, pooling)
        return int(self.facts["token_sample"]) if pooling == "tokens" else self.entry(layer, pooling).n

    def matrix(self, layer: int, pooling: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """|ρ| · 255 of the dimensions (d, d), correlated ones side by side, and their order (d,).

        For the last layer, it was computed with the view. For other layers, it is computed now from the stored points, in about a
        second for 768 dimensions; if those are a sample (or tokens), the correlation is the sample's.
        """
        cells, order = self.array(layer, pooling, "correlation"), self.array(layer, pooling, "order")
        if cells is not None and order is not None:
            return cells, order.astype(np.int64)
        correlation = np.asarray(metrics.abs_correlation(self.points(layer, pooling)))
        found = np.asarray(metrics.correlation_order(correlation))
        return np.rint(np.nan_to_num(correlation[np.ix_(found, found)]) * 255).astype(np.uint8), found

    def table(self, pooling: str) -> pd.DataFrame:
        """Table of the points: `row` (index in the split), the row's columns, `length` in tokens; for a run's encoder on its own task
        also `prediction` and `error`; for pooling `tokens`, starting with `token`."""
        with self._tensors() as file:
            packed = file.get_tensor(points.TOKENS if pooling == "tokens" else points.ROWS)
        return points.unpacked(packed)


def find(key: str) -> ViewResult | None:
    """The view with a key, marked as recently used; None if it is not cached."""
    result = STORE.find(key)
    return None if result is None else ViewResult(result.folder, result.facts)


def get(key: str) -> ViewResult:
    """The same. Raises `KeyError` if it is not cached."""
    view = find(key)
    if view is None:
        raise KeyError(key)
    return view
