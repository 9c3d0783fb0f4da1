"""Σ_S of the reported IsoScore*: the covariance of training tokens in evaluation mode.

Reading all training rows again would take a third of the time of training on them. So a sample is read, determined by the run's seed
and the same after every epoch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from isoviz.metrics.sample import as_float64
from isoviz.training import processes
from isoviz.training.evaluation import Buffered, EncodedSplits, Evaluator

POINTS = 250_000
"""Most points over all layers, as in the I-STAR paper."""
SHARE = 10
"""At most one in this many training tokens is read, but at least `LEAST`."""
LEAST = 2_000
"""Fewest tokens read, if available. With all layers, these are tens of points per dimension."""


class SampledShrinkage(NamedTuple):
    """How many training rows were read for Σ_S, how many there are, and Σ_S (d, d) with divisor n − 1."""

    rows: int
    of_rows: int
    covariance: NDArray[np.float64]


def tokens_to_read(rows: EncodedSplits, layers: int) -> int:
    """Number of training tokens for Σ_S: at most `POINTS` over all layers, at most one in `SHARE`, but at least `LEAST`."""
    return min(POINTS // layers, max(LEAST, int(rows.train.points.sum()) // SHARE))


def estimate(evaluator: Evaluator) -> SampledShrinkage:
    """Σ_S of token vectors of training rows, all layers, evaluation mode; the same on every process."""
    model, rows = evaluator.model, evaluator.rows
    sums = Buffered(model.width)
    read: set[int] = set()
    with torch.inference_mode():
        for items, batch in evaluator.batches(rows.sample(tokens_to_read(rows, model.num_layers))):
            read.update(rows.train.rows[items.numpy()].tolist())
            with evaluator.accelerator.autocast():
                reps = model.represent(**batch)
            keep = reps.attention_mask.bool()
            sums.add(torch.cat([hidden[keep] for hidden in reps.hidden_states]).float())
    rows_read = set().union(*processes.gather(read))
    total = sums.total().reduce(processes.gather)
    return SampledShrinkage(len(rows_read), rows.train_count, as_float64(total.covariance))
