"""From texts to padded batches: tokenising, bucketing by length, and an order that a resumed run can rejoin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

if TYPE_CHECKING:
    import pandas as pd
    from transformers import PreTrainedTokenizerBase

BUCKET = 50
"""Batches that are shuffled together before they are sorted by length: large enough to save padding, small enough to mix."""


@dataclass
class Encoded(Dataset[Any]):
    """Tokenised rows: `inputs[name][row]` is a list of token numbers; `labels` (n,) int64."""

    inputs: dict[str, list[list[int]]]
    labels: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """(n,) tokens per row."""
        return np.fromiter((len(ids) for ids in self.inputs["input_ids"]), dtype=np.int64, count=len(self.labels))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, row: int) -> dict[str, object]:
        return {
            **{name: values[row] for name, values in self.inputs.items()},
            "labels": int(self.labels[row]),
            "row": row,
        }


def encode(frame: pd.DataFrame, columns: Sequence[str], tokenizer: PreTrainedTokenizerBase, max_length: int) -> Encoded:
    """Tokenise one or two text columns; longer inputs are cut (of a pair, the longer text first)."""
    texts = [frame[column].tolist() for column in columns]
    tokens = tokenizer(*texts, truncation=True, max_length=max_length)
    return Encoded({name: list(values) for name, values in tokens.items()}, frame["label"].to_numpy(np.int64))


class Collator:
    """Pads a list of rows to the longest of them."""

    def __init__(self, pad_token_id: int) -> None:
        self.pad = {"input_ids": pad_token_id}

    def __call__(self, rows: list[dict[str, list[int]]]) -> dict[str, Tensor]:
        longest = max(len(row["input_ids"]) for row in rows)
        batch: dict[str, Tensor] = {}
        for name in rows[0]:
            if name in ("labels", "row"):
                batch[name] = torch.tensor([row[name] for row in rows])
                continue
            fill = self.pad.get(name, 0)
            batch[name] = torch.tensor([row[name] + [fill] * (longest - len(row[name])) for row in rows])
        return batch


class EpochBatches(Sampler[list[int]]):
    """Training batches of one epoch: seeded by (seed, epoch) alone, so that any process can rebuild them and rejoin midway.

    Args:
        lengths: (n,) tokens per row.
        batch_size: rows per batch; the last batch may be smaller.
        seed: the run's seed.
        bucketed: sort rows by length inside buckets of `BUCKET` batches, then shuffle the batches.
    """

    def __init__(self, lengths: np.ndarray, batch_size: int, seed: int, bucketed: bool) -> None:
        self.lengths = lengths
        self.batch_size = batch_size
        self.drop_last = False
        self.seed = seed
        self.bucketed = bucketed
        self.epoch = 0
        self.start = 0
        """Batches of this epoch that are already done (a resumed run)."""

    def __len__(self) -> int:
        return -(-len(self.lengths) // self.batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        return islice(self._batches(), self.start, None)

    def _batches(self) -> Iterator[list[int]]:
        generator = np.random.default_rng((self.seed, self.epoch))
        order = generator.permutation(len(self.lengths))
        size = self.batch_size
        if not self.bucketed:
            yield from (order[start : start + size].tolist() for start in range(0, len(order), size))
            return
        batches: list[list[int]] = []
        for start in range(0, len(order), size * BUCKET):
            bucket = order[start : start + size * BUCKET]
            bucket = bucket[np.argsort(self.lengths[bucket], kind="stable")]
            batches += [bucket[at : at + size].tolist() for at in range(0, len(bucket), size)]
        yield from (batches[i] for i in generator.permutation(len(batches)))


def fixed_batches(
    encoded: Encoded,
    collator: Collator,
    batch_size: int,
    rows: np.ndarray | None = None,
    part: tuple[int, int] = (0, 1),
) -> DataLoader[dict[str, Tensor]]:
    """Each row (or each of `rows`) once, longest first: little padding, and an out-of-memory shows at once.

    Args:
        part: (k, of): only every `of`-th batch from the k-th on, for one of several processes.
    """
    lengths = encoded.lengths
    rows = np.arange(len(lengths)) if rows is None else rows
    order = rows[np.argsort(-lengths[rows], kind="stable")]
    batches = [order[at : at + batch_size].tolist() for at in range(0, len(order), batch_size)][part[0] :: part[1]]
    # A generator of its own: iterating must not draw from the global one, which is dropout's.
    return DataLoader(encoded, batch_sampler=batches, collate_fn=collator, generator=torch.Generator())
