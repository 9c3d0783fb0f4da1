"""What a view holds: every measure of every layer and pooling, and the arrays behind its figures."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import isoviz
from isoviz import metrics, tasks
from isoviz.errors import InputError, IsoVizError
from isoviz.exploring.request import FORMAT, ViewRequest
from isoviz.exploring.results import array_name
from isoviz.models import sources
from isoviz.models.views import Pooling, Views

EV_KEPT: Final = 200
COSINE_POINTS: Final = 1_000
"""Points whose pairwise cosines are counted at most: all their pairs, so half a million."""
COSINE_BINS: Final = 200
"""Of equal width over [−1, 1]."""
CLOUD_POINTS: Final = 5_000
_FLOAT16_MAX: Final = 6e4

Tell = Callable[[int, int, str], None]

# Shares of the time, for a small encoder on two cores; a large one spends more on reading, and the bar is slower there.
_READING, _MEASURING, _PICTURES = (0, 550), (550, 900), (900, 1000)
_TOTAL: Final = 1000


def compute(request: ViewRequest, tell: Tell) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The facts for `profile.json` and the arrays by name, see `arrays_of`.

    Args:
        tell: told `done` of `total` and what is being done; never goes back.

    Raises:
        IsoVizError: in the user's terms, with the request's field it belongs to.
    """
    request.check()
    began = time.monotonic()
    tell(0, _TOTAL, "reading the data")
    task = tasks.get(request.task)
    source = sources.resolve(request.model)
    rows = tasks.load(task, request.data)
    frame = {"train": rows.train, "validation": rows.validation}[request.split].iloc[: request.max_rows]
    tell(0, _TOTAL, "loading the model")

    from isoviz.models.extract import layer_views
    from isoviz.models.profile import profile

    try:
        views = layer_views(
            source,
            [frame[column].tolist() for column in task.inputs],
            poolings="states",  # `head` is a matter of fine-tuning
            max_length=request.max_length,
            seed=request.seed,
            direction=task.checked_direction(None) or None,
            progress=_part(tell, _READING, "rows"),
        )
    except IsoVizError as error:
        raise _in_our_terms(error) from None
    read = time.monotonic()
    with warnings.catch_warnings():  # entries carry every warning in words
        warnings.simplefilter("ignore")
        entries = profile(views, split=request.split, seed=request.seed, progress=_part(tell, _MEASURING, "clouds"))
        arrays = arrays_of(views, seed=request.seed, progress=_part(tell, _PICTURES, "clouds"))
    source = sources.resolve(request.model)  # a model of the hub is on this machine now
    facts = {
        "format": FORMAT,
        "isoviz": isoviz.__version__,
        "request": request.as_json(),
        "model_fingerprint": source.fingerprint,
        "model_revision": source.revision,
        "data_fingerprint": rows.fingerprint,
        "rows": views.rows,
        "rows_in_split": len(rows.train if request.split == "train" else rows.validation),
        "depth": views.depth,
        "max_length": views.max_length,
        "truncated": views.truncated,
        "device": views.device,
        "warnings": list(views.warnings),
        "cosine_points": COSINE_POINTS,
        "reading_seconds": round(read - began, 3),
        "measuring_seconds": round(time.monotonic() - read, 3),
        "entries": entries,
    }
    return facts, arrays


def arrays_of(views: Views, *, seed: int = 0, progress: Tell | None = None) -> dict[str, NDArray[Any]]:
    """What the figures of each cloud need, under `array_name`.

    Per layer and pooling: `ev` (k,) float64, k <= `EV_KEPT`, nan where undefined; `sigma` (d,) population standard
    deviations and `mean` (d,), float32; `cosine` (`COSINE_BINS`,) int64, counts of the cosines of distinct pairs. For the last
    layer also `correlation` (d, d) uint8, |ρ| · 255 in the `order` (d,) int32 that puts like dimensions side by side, and, for
    cls and mean, `cloud` (n, d) float16 (float32 where a number is too large for that), n <= `CLOUD_POINTS`.
    """
    found: dict[str, NDArray[Any]] = {}
    keys: list[tuple[int, Pooling]] = [*views.clouds, *((layer, "tokens") for layer in views.tokens)]
    values: dict[str, NDArray[Any]]
    for done, (layer, pooling) in enumerate(keys):
        tokens = views.tokens.get(layer) if pooling == "tokens" else None
        points = views.points(layer, pooling)
        if tokens is not None:
            stream = tokens.stream
            values = {
                "ev": _shares(stream.covariance()),
                "sigma": stream.std().astype(np.float32),
                "mean": stream.mean().astype(np.float32),
            }
        else:
            values = {
                "ev": np.asarray(metrics.explained_variance(points, k=min(EV_KEPT, *points.shape)), dtype=np.float64),
                "sigma": np.asarray(metrics.dimension_std(points), dtype=np.float32),
                "mean": np.asarray(metrics.mean_activation(points), dtype=np.float32),
            }
        values["cosine"] = cosine_counts(points, seed=seed)
        if layer == views.depth:
            matrix = np.asarray(metrics.abs_correlation(points))
            order = np.asarray(metrics.correlation_order(matrix))
            values["order"] = order.astype(np.int32)
            values["correlation"] = np.rint(matrix[np.ix_(order, order)] * 255).astype(np.uint8)
            if tokens is None:
                kept = points[:CLOUD_POINTS]
                fits = np.abs(kept).max() <= _FLOAT16_MAX
                values["cloud"] = kept.astype(np.float16 if fits else np.float32)
        found |= {array_name(layer, pooling, what): array for what, array in values.items()}
        if progress:
            progress(done + 1, len(keys), "drawing up figures")
    return found


def cosine_counts(points: NDArray[Any], *, seed: int = 0) -> NDArray[np.int64]:
    """How many distinct pairs have which cosine, (`COSINE_BINS`,): of all pairs of at most `COSINE_POINTS` points drawn by
    the seed. Zero vectors are left out; the last bin holds 1 too."""
    x = np.asarray(points)
    if len(x) > COSINE_POINTS:
        chosen = np.random.default_rng(seed).choice(len(x), COSINE_POINTS, replace=False, shuffle=False)
        x = x[np.sort(chosen)]
    x = x.astype(np.float64)
    biggest = np.abs(x).max(axis=1)
    x = x[biggest > 0] / biggest[biggest > 0][:, None]  # first, so that squares neither overflow nor vanish
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    above = np.triu_indices(len(unit), k=1)
    cosines = np.clip((unit @ unit.T)[above], -1.0, 1.0)
    counts, _ = np.histogram(cosines, bins=COSINE_BINS, range=(-1.0, 1.0))
    return counts.astype(np.int64)


def _shares(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    from isoviz.metrics.spectrum import cumulative_shares, eigenvalues

    count = min(EV_KEPT, len(covariance))
    biggest = float(covariance.diagonal().max())
    if not biggest > 0:
        return np.full(count, np.nan)
    return np.asarray(cumulative_shares(eigenvalues(covariance / biggest), count), dtype=np.float64)


def _part(tell: Tell, share: tuple[int, int], units: str) -> Tell:
    """Progress of one part of the work as progress of the whole."""
    start, end = share

    def told(done: int, total: int, text: str) -> None:
        count = f", {done} of {total} {units}" if done else ""
        tell(start + (end - start) * done // max(1, total), _TOTAL, text + count)

    return told


def _in_our_terms(error: IsoVizError) -> IsoVizError:
    """The command line calls the rows `max_eval`; here they are `max_rows`."""
    if error.field != "max_eval":
        return error
    return InputError(str(error).replace("max_eval", "max_rows", 1), field="max_rows", advice=error.advice)
