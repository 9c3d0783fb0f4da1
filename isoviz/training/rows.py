"""The rows of one run, encoded, and the orders in which they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from isoviz.tasks import baselines
from isoviz.training.batches import Collator, EpochBatches, fixed_batches

if TYPE_CHECKING:
    import pandas as pd

    from isoviz.config import RunConfig
    from isoviz.tasks.protocol import TaskData
    from isoviz.training.heads import Head


class Rows:
    """Training and validation rows of one run.

    Attributes:
        train_count: training rows that are used; with windows over long rows there are more items in `train`.
        train, validation: the encoded items.
        frame: the validation rows themselves.
        guess: the metrics of the task's simple guess.
        order: decides the batches of an epoch.
        loader: the training batches.
        evaluation: this process's part of the validation items, each once.
    """

    def __init__(self, data: TaskData, head: Head, config: RunConfig, part: tuple[int, int]) -> None:
        train = _subset(data.train, config.max_train)
        self.frame = data.validation.iloc[: config.max_eval]
        self.train_count = len(train)
        self.guess = baselines.guess(head.task, train, self.frame)
        self.train, self.validation = head.encode(train), head.encode(self.frame)
        self.seed, self.part = config.seed, part
        self.collator = Collator(head.tokenizer.pad_token_id)
        self.large = config.batch_size if head.per_token else max(config.batch_size, 64)
        self.order = EpochBatches(self.train.lengths, config.batch_size, config.seed, config.batching == "bucketed")
        self.loader: DataLoader[dict[str, Tensor]] = DataLoader(
            self.train, batch_sampler=self.order, collate_fn=self.collator, generator=torch.Generator()
        )
        self.evaluation = fixed_batches(self.validation, self.collator, self.large, part=part)

    def sample(self, tokens: int | None) -> DataLoader[dict[str, Tensor]]:
        """This process's part of training items with about so many tokens (None: all): a choice by the run's seed, then like
        lengths together."""
        items = None
        if tokens is not None:
            points = self.train.points
            items = np.random.default_rng((self.seed, 1)).permutation(len(points))
            items = items[: int(np.searchsorted(np.cumsum(points[items]), tokens)) + 1]
        return fixed_batches(self.train, self.collator, self.large, items, self.part)


def _subset(frame: pd.DataFrame, limit: int | None) -> pd.DataFrame:
    """At most `limit` rows, a random choice that is the same for every run, in the original order."""
    if limit is None or limit >= len(frame):
        return frame
    chosen = np.random.default_rng(0).choice(len(frame), size=limit, replace=False)
    return frame.iloc[np.sort(chosen)]
