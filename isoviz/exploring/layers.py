"""What changes from layer to layer: the valley of the prompt entropy, the neighbours that stay, and a layer chosen without labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.cloud import draw
from isoviz.metrics.copies import comparable_rows
from isoviz.readouts.image import MOST_PAIRED, Image
from isoviz.statistics import intervals
from isoviz.statistics.intervals import Interval

if TYPE_CHECKING:
    from isoviz.models.views import Pooling, Views

NEIGHBOURS: Final = 10
FEWEST_ROWS: Final = 2 * NEIGHBOURS


class Valley(NamedTuple):
    """The layer of least prompt entropy, if entropy falls to it and rises after it.

    Attributes:
        layer: its number, neither the first nor the last.
        depth: entropy at the lower of the two sides (the highest layer before, the highest after) minus that of the layer.
        interval: of the depth, over texts. It describes this layer and these sides, which were chosen on the same texts.
    """

    layer: int
    depth: float
    interval: Interval | None


def valley(entropies: NDArray[np.floating]) -> Valley | None:
    """The compression valley of a model; None without one. The depth is the prominence of the minimum.

    Skean et al. (2025) and Queipo-de-Llano et al. (2025) describe the dip in decoders' middle layers; this measure of its depth is ours.

    Args:
        entropies: (layers, texts) prompt entropy of each text, nan where undefined.
    """
    defined = entropies[:, ~np.isnan(entropies).any(axis=0)]
    if defined.shape[0] < 3 or not defined.shape[1]:
        return None
    mean = defined.mean(axis=1)
    lowest = int(mean.argmin())
    if lowest in (0, len(mean) - 1):
        return None
    sides = int(mean[:lowest].argmax()), lowest + 1 + int(mean[lowest + 1 :].argmax())
    depths = defined[min(sides, key=lambda layer: float(mean[layer]))] - defined[lowest]
    return Valley(lowest, float(depths.mean()), intervals.of_mean(depths.tolist()))


@dataclass(frozen=True)
class Retention:
    """Which of each row's 10 nearest rows by cosine two layers have in common.

    Attributes:
        shares: (layers, layers) mean share over the rows.
        from_before: of each layer after the first, the share kept from the layer before, with its interval over rows.
        to_last: of each layer before the last, the share that the last layer has too, likewise.
        rows: number of rows compared.
    """

    shares: NDArray[np.float64]
    from_before: list[tuple[float, Interval | None]]
    to_last: list[tuple[float, Interval | None]]
    rows: int

    @property
    def by_chance(self) -> float:
        """The share that unrelated layers have in common."""
        return NEIGHBOURS / (self.rows - 1)

    @property
    def choice(self) -> int:
        """The layer whose neighbours the other layers share most: a choice without labels. Nothing says that it serves a task best."""
        others = self.shares.sum(axis=1) - self.shares.diagonal()
        return int(others.argmax())


def document(views: Views, pooling: Pooling) -> dict[str, Any]:
    """Both as JSON, by the names of `Valley` and `Retention`; None where undefined.

    Args:
        pooling: of the neighbours; `mean` if not every layer has it.
    """
    entropies = [views.tokens[layer].entropies for layer in sorted(views.tokens)]
    dip = valley(np.stack(entropies)) if entropies else None
    if any((layer, pooling) not in views.clouds for layer in range(views.depth + 1)):
        pooling = "mean"
    kept = retention([views.points(layer, pooling) for layer in range(views.depth + 1)])
    return {
        "pooling": pooling,
        "valley": None if dip is None else dip._asdict(),
        "retention": None
        if kept is None
        else {
            "rows": kept.rows,
            "by_chance": kept.by_chance,
            "from_before": [value for value, _ in kept.from_before],
            "to_last": [value for value, _ in kept.to_last],
            "choice": kept.choice,
        },
    }


def retention(clouds: Sequence[NDArray[Any]]) -> Retention | None:
    """The neighbours that layers keep, of clouds (n, d) of the same rows in layer order; None for fewer than 2 layers or 20 rows
    that differ in the last layer (`isoviz.metrics.copies`).

    Jiang et al. (2026, arXiv:2605.12714) call local retention of nearest neighbours over layers a Neighborhood Retention Score. Ten
    neighbours by cosine and the mean over rows are this project's, as is the choice of a layer: they rank models and prune layers
    by their score, and report that it helps the first and not the second. A layer whose rows are all equal, such as the first at [CLS],
    has neighbours by chance only.
    """
    if len(clouds) < 2 or len(clouds[0]) < FEWEST_ROWS:
        return None
    rows = draw(len(clouds[0]), MOST_PAIRED)
    rows = rows[comparable_rows(clouds[-1][rows])[0]]
    if len(rows) < FEWEST_ROWS:
        return None
    near = [Image(np.asarray(cloud[rows], np.float32)).nearest(NEIGHBOURS) for cloud in clouds]

    def kept(one: int, other: int) -> NDArray[np.float64]:
        return np.asarray(near[one].multiply(near[other]).sum(axis=1)) / NEIGHBOURS

    def mean(shares: NDArray[np.float64]) -> tuple[float, Interval | None]:
        return float(shares.mean()), intervals.of_mean(shares.tolist())

    last = len(clouds) - 1
    shares = np.eye(len(clouds))
    for one in range(len(clouds)):
        for other in range(one):
            shares[one, other] = shares[other, one] = kept(one, other).mean()
    return Retention(
        shares,
        [mean(kept(layer - 1, layer)) for layer in range(1, last + 1)],
        [mean(kept(layer, last)) for layer in range(last)],
        len(rows),
    )
