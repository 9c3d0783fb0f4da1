"""Shared parts of `training.py`: scales, freshly tokenised rows, and the clock."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from _workload import COLA, WIDE, Encoder, Lengths, sentences
from torch.utils.data import DataLoader
from transformers import PreTrainedTokenizerBase

from isoviz.config import RunConfig
from isoviz.models import sources
from isoviz.models.adapter import load_tokenizer
from isoviz.training.batches import Collator, Encoded, EpochBatches, tokenise

BATCH = 32


@dataclass(frozen=True)
class Scale:
    """How much is measured."""

    steps: int
    rounds: int
    layer_rows: int
    lengths: tuple[Lengths, ...] = (COLA, WIDE)


def padded(encoder: Encoder, lengths: Lengths, rows: int) -> Iterator[dict[str, torch.Tensor]]:
    """Batches of random rows, padded to their longest, without row numbers."""
    encoded, collator = tokenised(encoder, lengths, rows, seed=1)
    order = EpochBatches(encoded.lengths, BATCH, 0, bucketed=False)
    for batch in DataLoader(encoded, batch_sampler=order, collate_fn=collator):
        batch.pop("item")
        yield batch


def tokenised(encoder: Encoder, lengths: Lengths, rows: int, seed: int) -> tuple[Encoded, Collator]:
    tokenizer = load_tokenizer(sources.resolve(encoder.model))
    frame = sentences(tokenizer, lengths, rows, seed)
    encoded = encode(frame, ("sentence",), tokenizer, RunConfig().max_length)
    return encoded, Collator(tokenizer.pad_token_id)


def encode(frame: pd.DataFrame, columns: Sequence[str], tokenizer: PreTrainedTokenizerBase, longest: int) -> Encoded:
    """Rows of a classification task, tokenised without the cache."""
    return Encoded(tokenise(frame, columns, tokenizer, longest), frame["label"].to_numpy(), np.arange(len(frame)))


def moment() -> float:
    """Now, with everything on the device done."""
    if torch.accelerator.is_available():
        torch.accelerator.synchronize()
    return time.perf_counter()
