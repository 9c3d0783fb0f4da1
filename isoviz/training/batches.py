"""From texts to padded batches: a run's rows, bucketing by length, and a reproducible order for resumed runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from isoviz.models.tokenizer_limits import fill_empty

if TYPE_CHECKING:
    import pandas as pd
    from transformers import PreTrainedTokenizerBase

BUCKET = 50
"""Batches per bucket that is shuffled and then sorted by length: large enough to save padding, small enough to mix."""


@dataclass
class Encoded(Dataset[Any]):
    """Tokenised items: rows of a task, or windows of long rows.

    Attributes:
        inputs: `inputs[name][item]` is a list of token numbers.
        labels: (n,) codes or numbers, (n, 2) first and last token of an answer, or a list of n token lists.
        rows: (n,) int64, the row of each item, ascending.
    """

    inputs: dict[str, list[list[int]]]
    labels: np.ndarray | list[list[int]]
    rows: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """(n,) tokens read per item."""
        return _lengths(self.inputs["input_ids"])

    @property
    def points(self) -> np.ndarray:
        """(n,) tokens per item whose vectors are measured and regularised; for text generation, the target's tokens."""
        return _lengths(self.labels) if isinstance(self.labels, list) else self.lengths

    def firsts(self, count: int) -> np.ndarray:
        """(n,) bool: the first items of the first `count` rows."""
        mask = np.zeros(len(self), dtype=bool)
        mask[np.unique(self.rows, return_index=True)[1][:count]] = True
        return mask

    def originals(self, kept: np.ndarray) -> np.ndarray:
        """(n,) whose vector an item has: its own if `kept` (n,), else that of an item with the same tokens, kept or the first one."""
        first, known = np.arange(len(self)), dict[tuple[int, ...], int]()
        for item in np.argsort(~kept, kind="stable").tolist():
            place = known.setdefault(tuple(self.inputs["input_ids"][item]), item)
            if not kept[item]:
                first[item] = place
        return first

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, item: int) -> dict[str, object]:
        label = self.labels[item]
        return {
            **{name: values[item] for name, values in self.inputs.items()},
            "labels": label if isinstance(label, list) else label.tolist(),
            "item": item,
        }


def _lengths(lists: list[list[int]]) -> np.ndarray:
    return np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))


def tokenise(
    frame: pd.DataFrame, columns: Sequence[str], tokenizer: PreTrainedTokenizerBase, max_length: int
) -> dict[str, list[list[int]]]:
    """The model's inputs for one or two text columns; longer inputs are truncated (in a pair, the longer text first). Rows without any
    token get the end-of-text token."""
    tokens = tokenizer(*(frame[column].tolist() for column in columns), truncation=True, max_length=max_length)
    rows = {name: list(values) for name, values in tokens.items()}
    fill_empty(rows, tokenizer)
    return rows


class Collator:
    """Pads items to the longest one; list labels with -100, which the loss ignores."""

    def __init__(self, pad_token_id: int | None) -> None:
        self.pad = {"input_ids": pad_token_id or 0, "labels": -100}  # a decoder may have no such token, and reads none

    def __call__(self, items: list[dict[str, Any]]) -> dict[str, Tensor]:
        batch: dict[str, Tensor] = {}
        for name in items[0]:
            values = [item[name] for item in items]
            if isinstance(values[0], list):
                longest = max(map(len, values))
                fill = self.pad.get(name, 0)
                values = [value + [fill] * (longest - len(value)) for value in values]
            batch[name] = torch.tensor(values)
        return batch


class EpochBatches(Sampler[list[int]]):
    """Training batches of one epoch, which depend only on (seed, epoch), so that any process can rebuild them and continue midway.

    Args:
        lengths: (n,) tokens per item.
        batch_size: items per batch; the last batch may be smaller.
        seed: the run's seed.
        bucketed: sort rows by length inside buckets of `BUCKET` batches, then shuffle the batches.
        part: (k, of): of each batch only the k-th of so many nearly equal parts, for one of several processes. A last batch with
            one item, which has no negatives and no variance, or with fewer than parts joins the one before.
        together: so many consecutive items are one row, which counts as one item in all of this.
    """

    def __init__(
        self,
        lengths: np.ndarray,
        batch_size: int,
        seed: int,
        bucketed: bool,
        part: tuple[int, int] = (0, 1),
        together: int = 1,
    ) -> None:
        if together > 1:
            lengths = lengths.reshape(-1, together).max(axis=1)
        self.together = together
        self.lengths = lengths
        self.batch_size = batch_size
        self.drop_last = False
        self.seed = seed
        self.bucketed = bucketed
        self.part = part
        self.epoch = 0
        self.start = 0
        """Number of finished batches of this epoch (in a resumed run)."""

    def __len__(self) -> int:
        whole, rest = divmod(len(self.lengths), self.batch_size)
        return max(1, whole + (rest >= max(2, self.part[1])))

    def __iter__(self) -> Iterator[list[int]]:
        part, parts = self.part
        for batch in islice(self._batches(), self.start, None):
            own = batch[len(batch) * part // parts : len(batch) * (part + 1) // parts]
            yield [row * self.together + place for row in own for place in range(self.together)]

    def sizes(self) -> Iterator[int]:
        """Items of each whole batch, for the batches that are left of this epoch."""
        return map(len, islice(self._batches(), self.start, None))

    def _batches(self) -> Iterator[list[int]]:
        generator = np.random.default_rng((self.seed, self.epoch))
        order = generator.permutation(len(self.lengths))
        size = self.batch_size
        if self.bucketed:
            for start in range(0, len(order), size * BUCKET):
                bucket = order[start : start + size * BUCKET]
                order[start : start + size * BUCKET] = bucket[np.argsort(self.lengths[bucket], kind="stable")]
        starts = range(0, size * len(self), size)
        batches = [order[start : start + size].tolist() for start in starts]
        batches[-1] = order[starts[-1] :].tolist()
        yield from (batches[i] for i in generator.permutation(len(batches))) if self.bucketed else batches


def fixed_batches(
    encoded: Encoded,
    collator: Collator,
    batch_size: int,
    items: np.ndarray | None = None,
    part: tuple[int, int] = (0, 1),
) -> DataLoader[dict[str, Tensor]]:
    """Each item (or each of `items`) once, longest first: little padding, and an out-of-memory error occurs early.

    Args:
        part: (k, of): only every `of`-th batch from the k-th on, for one of several processes.
    """
    lengths = encoded.lengths
    items = np.arange(len(lengths)) if items is None else items
    order = items[np.argsort(-lengths[items], kind="stable")]
    batches = [order[index : index + batch_size].tolist() for index in range(0, len(order), batch_size)][
        part[0] :: part[1]
    ]
    # A separate generator, because iterating must not advance the global one, which dropout uses.
    return DataLoader(encoded, batch_sampler=batches, collate_fn=collator, generator=torch.Generator())
