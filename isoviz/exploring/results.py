"""Views on disk, and reading them."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz.exploring import points
from isoviz.jobs.results import ARRAYS, Result, ResultStore
from isoviz.metrics.record import CloudRecord

if TYPE_CHECKING:
    import pandas as pd

RANDOM: Final = "random weights: "
"""Start of the warning of a view with random weights."""
STORE: Final = ResultStore("views")


def array_name(layer: int, pooling: str, what: str) -> str:
    """Name of an array in the file: `ev`, `sigma`, `mean`, `cosine`, `cloud`, `correlation` or `order` of one cloud."""
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

    def array(self, layer: int, pooling: str, what: str) -> NDArray[Any] | None:
        """One array of one cloud, see `array_name`; None if it was not stored."""
        from safetensors import safe_open

        name = array_name(layer, pooling, what)
        with safe_open(self.folder / ARRAYS, framework="np") as file:
            if name not in file.keys():  # noqa: SIM118 (no mapping)
                return None
            tensor: NDArray[Any] = file.get_tensor(name)
            return tensor

    def stored_points(self, layer: int, pooling: str) -> int:
        """Number of stored points of a cloud, without reading them. Raises `KeyError` if the cloud does not exist."""
        from safetensors import safe_open

        name = array_name(layer, pooling, "cloud")
        with safe_open(self.folder / ARRAYS, framework="np") as file:
            if name not in file.keys():  # noqa: SIM118 (no mapping)
                raise KeyError((layer, pooling))
            return int(file.get_slice(name).get_shape()[0])

    def points(self, layer: int, pooling: str) -> NDArray[np.float32]:
        """The stored points of a cloud, (m, d), one per row of `table(pooling)`. Raises `KeyError` if the cloud does not exist."""
        cloud = self.array(layer, pooling, "cloud")
        if cloud is None:
            raise KeyError((layer, pooling))
        return cloud.astype(np.float32)

    def mapped(self, layer: int, pooling: str) -> NDArray[np.floating]:
        """The same points memory-mapped, as float16 or float32."""
        path = self.folder / ARRAYS
        with path.open(
            "rb"
        ) as file:  # safetensors: eight bytes with the length of a JSON header, the header, then the arrays
            length = int.from_bytes(file.read(8), "little")
            entry = json.loads(file.read(length)).get(array_name(layer, pooling, "cloud"))
        if entry is None:
            raise KeyError((layer, pooling))
        kind = {"F16": np.float16, "F32": np.float32}[entry["dtype"]]
        return np.memmap(path, kind, "r", 8 + length + entry["data_offsets"][0], tuple(entry["shape"]))

    def table(self, pooling: str) -> pd.DataFrame:
        """Table of the points: `row` (index in the split), the row's columns, `length` in tokens; for a run's encoder on its own task
        also `prediction` and `error`; for pooling `tokens`, starting with `token`."""
        from safetensors import safe_open

        with safe_open(self.folder / ARRAYS, framework="np") as file:
            packed = file.get_tensor(points.TOKENS if pooling == "tokens" else points.ROWS)
        return points.unpacked(packed)


def find(key: str) -> ViewResult | None:
    """The view with a key, marked as recently used; None if it is not cached."""
    result = STORE.find(key)
    return None if result is None else ViewResult(result.folder, result.facts)


def publish(key: str, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Publish a view. If it already exists, replace only pending parts."""
    STORE.publish(key, facts, arrays)
