"""Views on disk, and what can be read of one."""

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
"""How the warning begins that a view of random weights has."""
STORE: Final = ResultStore("views", formerly=("desk", "turns", "locks"))


def array_name(layer: int, pooling: str, what: str) -> str:
    """The name of an array in the file: `ev`, `sigma`, `mean`, `cosine`, `cloud`, `correlation` or `order` of one cloud."""
    return f"{layer}.{pooling}.{what}"


@dataclass(frozen=True)
class ViewResult(Result):
    """A view; `facts` are what `isoviz.exploring.measuring.compute` says of it: `rows`, `depth`, `entries` (one per layer ×
    pooling), ... What is `pending` is not in the entries yet.
    """

    @property
    def depth(self) -> int:
        """Number of the last layer; 0 is the embedding output."""
        return int(self.facts["depth"])

    @property
    def random_weights(self) -> bool:
        """Whether weights of the encoder were drawn at random, because its checkpoint does not fit it."""
        return any(note.startswith(RANDOM) for note in self.facts.get("warnings", ()))

    @functools.cached_property
    def entries(self) -> list[CloudRecord]:
        """The record of every cloud, as `isoviz.models.profile.profile` gives them."""
        return [CloudRecord.model_validate(entry) for entry in self.facts["entries"]]

    @functools.cached_property
    def together(self) -> CloudRecord | None:
        """The record of all layers' tokens as one cloud, see `isoviz.exploring.shrinkage.together`; None while it is pending
        or where it could not be computed (`facts["shrinkage"]["reason"]`)."""
        found = self.facts["layers"]
        return None if found is None else CloudRecord.model_validate(found)

    @property
    def poolings(self) -> list[str]:
        """In the order in which they are shown."""
        return list(dict.fromkeys(entry.pooling for entry in self.entries))

    def entry(self, layer: int, pooling: str) -> CloudRecord:
        """The record of one cloud; KeyError for one that is not there."""
        for entry in self.entries:
            if (entry.layer, entry.pooling) == (layer, pooling):
                return entry
        raise KeyError((layer, pooling))

    def array(self, layer: int, pooling: str, what: str) -> NDArray[Any] | None:
        """One array of one cloud, see `array_name`; None for what was not kept."""
        from safetensors import safe_open

        name = array_name(layer, pooling, what)
        with safe_open(self.folder / ARRAYS, framework="np") as file:
            if name not in file.keys():  # noqa: SIM118 (no mapping)
                return None
            found: NDArray[Any] = file.get_tensor(name)
            return found

    def kept(self, layer: int, pooling: str) -> int:
        """How many points of one cloud are kept, without reading them; KeyError for a cloud that is not there."""
        from safetensors import safe_open

        name = array_name(layer, pooling, "cloud")
        with safe_open(self.folder / ARRAYS, framework="np") as file:
            if name not in file.keys():  # noqa: SIM118 (no mapping)
                raise KeyError((layer, pooling))
            return int(file.get_slice(name).get_shape()[0])

    def points(self, layer: int, pooling: str) -> NDArray[np.float32]:
        """The kept points of one cloud, (m, d): one per line of `table(pooling)`; KeyError for a cloud that is not there."""
        found = self.array(layer, pooling, "cloud")
        if found is None:
            raise KeyError((layer, pooling))
        return found.astype(np.float32)

    def mapped(self, layer: int, pooling: str) -> NDArray[np.floating]:
        """The same points as they lie on disk, float16 or float32, mapped instead of read."""
        path = self.folder / ARRAYS
        with path.open(
            "rb"
        ) as file:  # eight bytes for the length of a JSON header, then the arrays: safetensors' format
            length = int.from_bytes(file.read(8), "little")
            entry = json.loads(file.read(length)).get(array_name(layer, pooling, "cloud"))
        if entry is None:
            raise KeyError((layer, pooling))
        kind = {"F16": np.float16, "F32": np.float32}[entry["dtype"]]
        return np.memmap(path, kind, "r", 8 + length + entry["data_offsets"][0], tuple(entry["shape"]))

    def table(self, pooling: str) -> pd.DataFrame:
        """What each point is: `row` (its number in the split, from 0), the row's columns, `length` in tokens; of a run's
        encoder on its own task also `prediction` and `error`; for pooling `tokens`, `token` before them."""
        from safetensors import safe_open

        with safe_open(self.folder / ARRAYS, framework="np") as file:
            packed = file.get_tensor(points.TOKENS if pooling == "tokens" else points.ROWS)
        return points.unpacked(packed)


def find(key: str) -> ViewResult | None:
    """The view of a key, None if there is none; looking keeps it from being the next to go."""
    result = STORE.find(key)
    return None if result is None else ViewResult(result.folder, result.facts)


def publish(key: str, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Give a view its place; of one that is there already, only what was pending is replaced."""
    STORE.publish(key, facts, arrays)
