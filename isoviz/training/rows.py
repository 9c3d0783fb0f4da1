"""The encoded rows of one run, and the orders in which they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from isoviz.tasks import baselines
from isoviz.training.batches import Collator, Encoded, EpochBatches, fixed_batches

if TYPE_CHECKING:
    import pandas as pd

    from isoviz.config import RunConfig
    from isoviz.tasks.protocol import TaskData
    from isoviz.training.heads import Head
    from isoviz.training.heads.protocol import Tell


@dataclass
class Scored:
    """A split to score: its rows, its items, and this process's part of the items."""

    frame: pd.DataFrame
    encoded: Encoded
    batches: DataLoader[dict[str, Tensor]]


class Rows:
    """Training and validation rows of one run.

    Attributes:
        train_count: number of training rows; with windows over long rows, `train` has more items.
        train, validation: the encoded items.
        frame: the validation rows.
        extra: further validation splits by name, which are scored but not measured.
        guess: the metrics of the task's simple guess.
        order: decides the batches of an epoch.
        loader: the training batches.
        large: items per batch for evaluation, divided by `shrunk` if memory is short.
        evaluation: this process's part of the validation items.
    """

    def __init__(
        self,
        data: TaskData,
        head: Head,
        config: RunConfig,
        part: tuple[int, int],
        shrunk: int = 1,
        tell: Tell | None = None,
    ) -> None:
        self.frame = data.validation
        self.train_count = len(data.train)
        self.guess = baselines.guess(head.task, data.train, self.frame)
        self.train, self.validation = head.encode(data.train, tell), head.encode(self.frame, tell)
        self.seed, self.part = config.seed, part
        self.collator = Collator(head.tokenizer.pad_token_id)
        self.large = max(1, (config.batch_size if head.per_token else max(config.batch_size, 64)) // shrunk)
        self.order = EpochBatches(
            self.train.lengths, config.batch_size, config.seed, config.batching == "bucketed", part
        )
        self.loader: DataLoader[dict[str, Tensor]] = DataLoader(
            self.train, batch_sampler=self.order, collate_fn=self.collator, generator=torch.Generator()
        )
        self.evaluation = fixed_batches(self.validation, self.collator, self.large, part=part)
        self.extra = {name: self._scored(frame, head, tell) for name, frame in data.extra.items()}

    def _scored(self, frame: pd.DataFrame, head: Head, tell: Tell | None) -> Scored:
        encoded = head.encode(frame, tell)
        return Scored(frame, encoded, fixed_batches(encoded, self.collator, self.large, part=self.part))

    def sample(self, tokens: int | None) -> DataLoader[dict[str, Tensor]]:
        """This process's part of training items with about `tokens` tokens (None: all): sampled by the run's seed, then sorted by
        length."""
        items = None
        if tokens is not None:
            points = self.train.points
            items = np.random.default_rng((self.seed, 1)).permutation(len(points))
            items = items[: int(np.searchsorted(np.cumsum(points[items]), tokens)) + 1]
        return fixed_batches(self.train, self.collator, self.large, items, self.part)
