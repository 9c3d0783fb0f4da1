"""A cloud in two or three dimensions: PCA, whose axes have known shares of the variance, and UMAP, which keeps neighbours together."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from types import ModuleType
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoviz.errors import InputError
from isoviz.metrics.cloud import draw, resolution
from isoviz.metrics.sample import Sample

Kind = Literal["pca", "umap"]
KINDS: Final[tuple[Kind, ...]] = ("pca", "umap")
Metric = Literal["cosine", "euclidean"]
METRICS: Final[tuple[Metric, ...]] = ("cosine", "euclidean")
FEWEST_POINTS: Final = 5
MOST_POINTS: Final = 200_000
MOST_FITTED: Final = 20_000
"""Most points of UMAP and of maps in three dimensions, and for fitting PCA's axes; larger clouds are sampled with the seed."""
_BLOCK: Final = 16_384

Tell = Callable[[int, int, str], None]


@dataclass(frozen=True)
class MapRequest:
    """Settings of a map.

    Attributes:
        kind: one of `KINDS`.
        dimensions: 2 or 3.
        points: at most this many; a larger cloud is sampled with the seed (see `drawn`).
        neighbours, min_dist, metric: of UMAP: how many neighbours count, how close points may lie, and what near means.
        seed: of the draw and of UMAP.
    """

    kind: Kind = "pca"
    dimensions: int = 2
    points: int = 5_000
    neighbours: int = 15
    min_dist: float = 0.1
    metric: Metric = "cosine"
    seed: int = 0

    def check(self) -> None:
        """Raise `InputError`, with its field, for an invalid setting."""
        choices = {"kind": KINDS, "dimensions": (2, 3), "metric": METRICS}
        for field, allowed in choices.items():
            if getattr(self, field) not in allowed:
                listed = ", ".join(map(str, allowed))
                raise InputError(f"{field}: got {getattr(self, field)} (allowed: {listed})", field=field)
        limits = {"points": (FEWEST_POINTS, MOST_POINTS), "neighbours": (2, 200), "min_dist": (0, 1)}
        for field, (low, high) in (limits | {"seed": (0, 2**32 - 1)}).items():
            if not low <= getattr(self, field) <= high:
                raise InputError(
                    f"{field}: must be at least {low}, at most {high} (got {getattr(self, field)})", field=field
                )

    def as_json(self) -> dict[str, Any]:
        """JSON form, which `MapRequest(**…)` reads."""
        return asdict(self)

    def key(self, layer: int, pooling: str) -> str:
        """Sixteen hex digits: equal for the same settings and cloud. For PCA, UMAP's settings are ignored."""
        settings = {
            name: value for name, value in self.as_json().items() if self.kind == "umap" or name not in _OF_UMAP
        }
        content = json.dumps([layer, pooling, settings], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]


_OF_UMAP: Final = ("neighbours", "min_dist", "metric")


def sampled(count: int, request: MapRequest) -> NDArray[np.int64]:
    """Ascending indices of the points on the map: all, or a sample of `request.points` with its seed."""
    most = request.points if (request.kind, request.dimensions) == ("pca", 2) else min(request.points, MOST_FITTED)
    return draw(count, most, request.seed)


@dataclass(frozen=True)
class PCAMap:
    """The directions of largest variance.

    Attributes:
        coordinates: (n, k) float64.
        shares: (k,) each axis's share of the total variance; nan if the points are equal, up to the resolution of their type.
        centre, axes: (d,) and (d, k), orthonormal, with the sign for which each axis's largest weight is positive.
    """

    coordinates: NDArray[np.float64]
    shares: NDArray[np.float64]
    centre: NDArray[np.float64]
    axes: NDArray[np.float64]

    def place(self, points: ArrayLike) -> NDArray[np.float64]:
        """Coordinates (m, k) of other points (m, d) of the same space."""
        projected: NDArray[np.float64] = (np.asarray(points, dtype=np.float64) - self.centre) @ self.axes
        return projected


def pca(points: ArrayLike, dimensions: int = 2) -> PCAMap:
    """Principal components of a cloud (n, d) by its covariance, or by its Gram matrix where n < d.

    The axes and shares are fitted on at most `MOST_FITTED` points, sampled with seed 0; all points are projected.

    Raises:
        InputError: fewer points or dimensions than axes.
    """
    from scipy.linalg import eigh

    cloud = np.asanyarray(points)
    if len(cloud) > MOST_FITTED:
        fitted = pca(cloud[draw(len(cloud), MOST_FITTED, 0)], dimensions)
        placed = [fitted.place(cloud[start : start + _BLOCK]) for start in range(0, len(cloud), _BLOCK)]
        return replace(fitted, coordinates=np.concatenate(placed))
    x = np.asarray(cloud, dtype=np.float64)
    n, d = x.shape
    if min(n - 1, d) < dimensions:
        raise InputError(f"points: {n} points in {d} dimensions have no {dimensions} axes", field="dimensions")
    centre = x.mean(axis=0)
    x = x - centre
    if np.all(x.std(axis=0) <= resolution(cloud) * np.abs(centre)):
        x[:] = 0.0
    small = x @ x.T if n < d else x.T @ x
    total = float(np.trace(small))
    last = len(small) - 1
    values, vectors = eigh(small, subset_by_index=[last - dimensions + 1, last])
    values, vectors = np.clip(values[::-1], 0.0, None), vectors[:, ::-1]
    if n < d:  # from weights on points to weights on dimensions
        vectors = x.T @ vectors
        lengths = np.linalg.norm(vectors, axis=0)
        vectors = vectors / np.where(lengths > 0, lengths, 1.0)
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(dimensions)])
    vectors = vectors * np.where(signs == 0, 1.0, signs)
    shares = values / total if total > 0 else np.full(dimensions, np.nan)
    return PCAMap(x @ vectors, shares, centre, vectors)


def fit_umap(points: ArrayLike, request: MapRequest, tell: Tell | None = None) -> Any:
    """A fitted `umap.UMAP`; its `embedding_` is (n, k) float32, and its `transform` places other points. Imports numba, which is slow.

    Uses one thread and a seed, so that the same request gives the same map.

    Raises:
        InputError: too few points, or all points are identical.
    """
    x = np.asarray(points, dtype=np.float32)
    if len(x) < FEWEST_POINTS:
        raise InputError(f"points: UMAP needs at least {FEWEST_POINTS} (got {len(x)})", field="points")
    if Sample(x).collapsed:
        raise InputError("points: all points of this cloud are identical, so there are no neighbours", field="layer")
    if tell:
        tell(0, 100, "loading UMAP")
    with _umap() as umap:
        if tell:
            tell(5, 100, "laying out the map")
        return umap.UMAP(
            n_components=request.dimensions,
            n_neighbors=min(request.neighbours, len(x) - 1),
            min_dist=request.min_dist,
            metric=request.metric,
            random_state=request.seed,
            transform_seed=request.seed,
            n_jobs=1,
        ).fit(x)


@contextmanager
def _umap() -> Iterator[ModuleType]:
    """umap-learn, which meanwhile keeps the code that numba compiles on disk: otherwise each process compiles for half a minute."""
    import numba

    compiled = numba.njit
    numba.njit = functools.partial(compiled, cache=True)  # type: ignore[assignment]
    try:
        import umap

        yield umap
    finally:
        numba.njit = compiled


def coordinates(points: ArrayLike, request: MapRequest) -> NDArray[np.floating]:
    """A cloud (n, d) laid out: (m, k), a line for each point of `drawn`.

    Raises:
        InputError: an invalid setting, or a cloud that cannot be laid out with it.
    """
    request.check()
    x = np.asarray(points)
    x = x[sampled(len(x), request)]
    if request.kind == "pca":
        return pca(x, request.dimensions).coordinates
    return np.asarray(fit_umap(x, request).embedding_, dtype=np.float32)


# ------------------------------------------------------------------------------------------- points inside a line

MOST_CORNERS = 40
"""Most corners of a line: enough for a hand-drawn lasso, and short enough for an address."""


def inside(points: ArrayLike, corners: ArrayLike) -> NDArray[np.bool_]:
    """(n,) mask of the points (n, 2) inside the closed polygon with these corners (m, 2), m >= 3.

    Uses the even-odd rule: regions enclosed twice are outside. A point on an edge is inside only on left and lower edges, so that
    exactly one of two adjacent polygons contains it.
    """
    x, y = np.asarray(points, dtype=np.float64).T
    polygon = np.asarray(corners, dtype=np.float64)
    enclosed = np.zeros(len(x), dtype=bool)
    for (x0, y0), (x1, y1) in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        crosses = (y0 <= y) != (y1 <= y)  # the edge passes the point's height
        if crosses.any():
            at = x0 + (y[crosses] - y0) * (x1 - x0) / (y1 - y0)
            enclosed[crosses] ^= x[crosses] < at
    return enclosed


def shortened_line(corners: ArrayLike) -> list[tuple[float, float]]:
    """The polygon with at most `MOST_CORNERS` corners, without those that span the smallest triangles, rounded to three digits.

    Selections use the shortened line, so that the address restores the same points.
    """
    polygon = _pairs(corners)
    while len(polygon) > MOST_CORNERS:
        before, after = np.roll(polygon, 1, axis=0) - polygon, np.roll(polygon, -1, axis=0) - polygon
        polygon = np.delete(polygon, np.argmin(np.abs(before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0])), axis=0)
    span = float(np.ptp(polygon, axis=0).max())
    digits = 3 - int(np.floor(np.log10(span))) if span > 0 else 3
    return [(round(float(x), digits), round(float(y), digits)) for x, y in polygon]


def line_text(corners: Sequence[tuple[float, float]]) -> str:
    """The corners as text for an address: `x,y;x,y`."""
    return ";".join(f"{x:g},{y:g}" for x, y in corners)


def line_of(text: str) -> list[tuple[float, float]] | None:
    """The inverse of `line_text`; None for other text."""
    try:
        pairs = [tuple(map(float, pair.split(","))) for pair in text.split(";")]
        array = _pairs(pairs)
    except (ValueError, TypeError):
        return None
    return [(float(x), float(y)) for x, y in array] if 3 <= len(array) <= 4 * MOST_CORNERS else None


def _pairs(coordinates: ArrayLike) -> NDArray[np.float64]:
    pairs = np.asarray(coordinates, dtype=np.float64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.isfinite(pairs).all():
        raise InputError(
            f"selection: expected finite pairs of coordinates (got shape {pairs.shape})", field="selection"
        )
    return pairs
