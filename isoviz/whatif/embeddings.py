"""Result of a pass over a run's rows: vectors before the head, labels, predictions, and the frozen head."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from isoviz.demo import EXAMPLE
from isoviz.errors import InputError
from isoviz.jobs.results import ARRAYS, FACTS
from isoviz.readouts.heads import FrozenHead, HeadRows, primary
from isoviz.readouts.reading import Annotations
from isoviz.whatif import encoding
from isoviz.whatif.layer import IsoLayerTransform
from isoviz.whatif.request import STORE, request_for

if TYPE_CHECKING:
    from isoviz.runs.store import Store

Cloud = Literal["head", "pooled"]
CLOUDS: tuple[Cloud, ...] = ("head", "pooled")


@dataclass(frozen=True)
class Embeddings:
    """One cloud of a run: the input of its output layer (`head`), or the same vectors before the method (`pooled`).

    Attributes:
        key: key of the pass.
        cloud: `head` or `pooled`.
        facts: facts of the pass: `run`, `task`, `kind`, `primary`, `rows`, `metrics`, `notes`, ...
        train, validation: (n, h) float32.
        train_labels, labels: (n,) class codes, or numbers for regression; `labels` of the validation rows.
        predicted: (n,) the run's own predictions on the validation rows.
        head: the frozen output layer.
        folder: folder of the pass.
        rows: (m,) indices of the validation rows in the run's data.
    """

    key: str
    cloud: Cloud
    facts: Mapping[str, Any] = field(repr=False)
    train: NDArray[np.float32] = field(repr=False)
    validation: NDArray[np.float32] = field(repr=False)
    train_labels: NDArray[Any] = field(repr=False)
    labels: NDArray[Any] = field(repr=False)
    predicted: NDArray[Any] = field(repr=False)
    head: FrozenHead = field(repr=False)
    folder: Path = field(repr=False, default=Path())
    rows: NDArray[np.int64] = field(repr=False, default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def differs(self) -> bool:
        """Whether the method changes the vectors, so that `head` and `pooled` differ."""
        return bool(self.facts["differs"])

    @property
    def texts(self) -> list[str]:
        """Texts of the validation rows."""
        return _texts(self.folder)

    def frozen_metric(self, points: Any) -> float | None:
        """The task's primary metric if the frozen head reads (n, h) `points` instead of `validation`."""
        return primary(self.facts["primary"], self.labels, self.head.predict(np.asarray(points, dtype=np.float64)))

    def refitted_metric(self, train_points: Any, points: Any) -> float | None:
        """The same for a head refitted on (n, k) `train_points` instead of `train`."""
        return self._head_rows.refitted(train_points, points).value

    def isolayer(self, **params: Any) -> IsoLayerTransform:
        """An untrained IsoLayer for these rows' labels, as a step of a chain."""
        return IsoLayerTransform(self._head_rows, **params)

    @property
    def annotations(self) -> Annotations:
        """What read-outs know about the validation rows."""
        return Annotations(head=self._head_rows)

    @property
    def _head_rows(self) -> HeadRows:
        facts = self.facts
        metric, seed = str(facts["primary"]), int(facts["seed"])
        return HeadRows(self.train_labels, self.labels, self.head, facts["kind"], metric, seed)


def embeddings(run: str, *, store: Store | str | Path | None = None, cloud: Cloud = "head") -> Embeddings:
    """The embeddings of a finished run: cached, or computed now and cached.

    Args:
        run: run id.
        store: a URL, a folder or an open store. Default: the command line's store.
        cloud: `head`, or `pooled` for the vectors before the method.

    Raises:
        IsoVizError: no such run, the run has not finished, or its head does not read one vector per row.
    """
    from isoviz.runs.store import Store

    if run.startswith(EXAMPLE):
        try:
            return load(run, cloud)
        except KeyError:
            raise InputError(f"run: the example '{run}' ships without embeddings", field="run") from None
    opened = store if isinstance(store, Store) else Store(store)
    request = request_for(opened.get(run), opened.folder_of(run))
    if STORE.find(request.key) is None:
        STORE.publish(request.key, *encoding.compute(request, lambda done, total, text: None))
        STORE.shrink(keep=request.key)
    return load(request.key, cloud)


def load(key: str, cloud: Cloud = "head") -> Embeddings:
    """The embeddings of a finished pass. Raises `KeyError` if it is not cached."""
    result = STORE.find(key)  # also marks it as recently used
    if result is None:
        raise KeyError(key)
    return _read(key, cloud, result.folder)


@functools.lru_cache(maxsize=4)
def _read(key: str, cloud: Cloud, folder: Path) -> Embeddings:
    from safetensors.numpy import load_file

    if cloud not in CLOUDS:
        raise InputError(f"cloud: no cloud '{cloud}' (allowed: {', '.join(CLOUDS)})", field="cloud")
    arrays = load_file(folder / ARRAYS)
    facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    facts["differs"] = "train.head" in arrays
    source = cloud if facts["differs"] else "pooled"
    return Embeddings(
        key=key,
        cloud=cloud,
        facts=facts,
        train=arrays[f"train.{source}"].astype(np.float32, copy=False),  # examples are stored in float16
        validation=arrays[f"validation.{source}"].astype(np.float32, copy=False),
        train_labels=arrays["train.labels"],
        labels=arrays["validation.labels"],
        predicted=arrays["validation.predicted"],
        head=FrozenHead(arrays["weight"], arrays["bias"], facts["kind"]),
        folder=folder,
        rows=arrays["validation.rows"],
    )


@functools.lru_cache(maxsize=4)
def _texts(folder: Path) -> list[str]:
    from safetensors import safe_open

    with safe_open(folder / ARRAYS, framework="np") as file:
        texts: list[str] = json.loads(file.get_tensor("texts").tobytes().decode())
    return texts
