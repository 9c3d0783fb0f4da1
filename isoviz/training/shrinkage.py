"""Σ_S of the reported IsoScore*: the covariance of training tokens in evaluation mode, and the error from sampling them.

Reading all training rows again would take a third of the time of training on them. So a sample is read, determined by the run's seed
and the same after every epoch, and the score has a sampling error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from isoviz.metrics.intervals import student_quantile
from isoviz.metrics.moments import covariance_moments, plug_in_score
from isoviz.metrics.sample import as_float64
from isoviz.metrics.streaming import CovarianceAccumulator
from isoviz.training import processes
from isoviz.training.evaluation import Buffered, EncodedSplits, Evaluator

POINTS = 250_000
"""Most points over all layers, as in the I-STAR paper."""
SHARE = 10
"""At most one in this many training tokens is read, but at least `LEAST`."""
LEAST = 2_000
"""Fewest tokens read, if available. With all layers, these are tens of points per dimension."""
PARTS = 10
"""Number of parts of the sampled rows, for the jackknife."""

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class SampledShrinkage:
    """Σ_S and its origin.

    Attributes:
        rows, of_rows: training rows read, and in total.
        parts: running sums over the tokens of each of `PARTS` parts of those rows.
    """

    rows: int
    of_rows: int
    parts: tuple[CovarianceAccumulator, ...]

    @property
    def covariance(self) -> Matrix:
        """(d, d) Σ_S, divisor n − 1."""
        return as_float64(self._total.covariance)

    def half_width(self, cloud: Matrix, zeta: float) -> float | None:
        """Half-width of the 95 % interval of IsoScore* from sampling the training rows; None if all were read.

        Jackknife over the parts, with finite-population correction. With so few parts, the factor is Student's t instead of 1.96.

        Args:
            cloud: (d, d) Σ_X, divisor n − 1.
            zeta: weight of Σ_S.
        """
        nonempty_parts = [part for part in self.parts if part.count]
        if self.rows >= self.of_rows or len(nonempty_parts) < 2:
            return None
        total = self._total
        mixed = ((1 - zeta) * cloud + zeta * _without(total, part) for part in nonempty_parts)
        scores = np.array([plug_in_score(covariance_moments(covariance)) for covariance in mixed])
        deviations = scores - scores.mean()
        variance = (len(nonempty_parts) - 1) / len(nonempty_parts) * float(deviations @ deviations)
        reach = student_quantile(0.975, len(nonempty_parts) - 1)
        return reach * math.sqrt(variance * (1 - self.rows / self.of_rows))

    @cached_property
    def _total(self) -> CovarianceAccumulator:
        return CovarianceAccumulator.union(self.parts)


def tokens_to_read(rows: EncodedSplits, layers: int) -> int:
    """Number of training tokens for Σ_S: at most `POINTS` over all layers, at most one in `SHARE`, but at least `LEAST`."""
    return min(POINTS // layers, max(LEAST, int(rows.train.points.sum()) // SHARE))


def estimate(evaluator: Evaluator) -> SampledShrinkage:
    """Σ_S of token vectors of training rows, all layers, evaluation mode; the same on every process."""
    model, rows = evaluator.model, evaluator.rows
    place = np.random.default_rng((rows.seed, 3)).permutation(int(rows.train.rows.max()) + 1) % PARTS
    sums = [Buffered(model.width) for _ in range(PARTS)]
    read: set[int] = set()
    with torch.inference_mode():
        for items, batch in evaluator.batches(rows.sample(tokens_to_read(rows, model.num_layers))):
            numbers = rows.train.rows[items.numpy()]
            read.update(numbers.tolist())
            with evaluator.accelerator.autocast():
                reps = model.represent(**batch)
            keep = reps.attention_mask.bool()
            points = torch.stack([hidden[keep] for hidden in reps.hidden_states]).float()
            parts = torch.from_numpy(place[numbers]).to(keep.device)[:, None].expand(keep.shape)[keep]
            for part in np.unique(place[numbers]):
                sums[part].add(points[:, parts == int(part)].flatten(0, 1))
    rows_read = set().union(*processes.gather(read))
    totals = tuple(part.total().reduce(processes.gather) for part in sums)
    return SampledShrinkage(len(rows_read), rows.train_count, totals)


def _without(total: CovarianceAccumulator, part: CovarianceAccumulator) -> Matrix:
    """(d, d) covariance of a cloud without one part."""
    remaining = total.count - part.count
    scatter = as_float64(total.covariance) * (total.count - 1)
    if part.count > 1:
        scatter = scatter - as_float64(part.covariance) * (part.count - 1)
    gap = as_float64(part.mean) - as_float64(total.mean)
    return (scatter - (total.count * part.count / remaining) * np.outer(gap, gap)) / (remaining - 1)
