"""Packing short texts into rows of one length, and masking them.

Each row holds several texts one after the other. Attention is block-diagonal and positions restart at each text, so
that [CLS] stands at position 0 and sees its own text only, exactly as in fine-tuning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

Encoded = tuple[list[int], ...]  # one list of token ids per sentence, without special tokens
OPEN_ROWS = 16


@dataclass(frozen=True)
class Specials:
    pad: int
    cls: int
    sep: int
    mask: int
    vocabulary: int


@dataclass(frozen=True)
class Packed:
    """A batch, every array (rows, length). `block` numbers a row's texts from 1 (0 is padding)."""

    ids: np.ndarray
    types: np.ndarray
    positions: np.ndarray
    block: np.ndarray
    pair_cells: np.ndarray  # (pairs, 2): row and column of the [CLS] of each two-sentence text
    pair_random: np.ndarray  # (pairs,): 1 where the second sentence was drawn from another text


def with_random_seconds(
    encoded: list[Encoded], kinds: list[str], rng: np.random.Generator
) -> list[tuple[Encoded, int]]:
    """Replace the second sentence of half of the two-sentence texts by that of another text of their kind (marked 1)."""
    by_kind: dict[str, list[int]] = {}
    for index, kind in enumerate(kinds):
        if len(encoded[index]) == 2:
            by_kind.setdefault(kind, []).append(index)
    random_second = rng.random(len(encoded)) < 0.5
    draws = rng.random(len(encoded))
    result: list[tuple[Encoded, int]] = []
    for index, text in enumerate(encoded):
        if len(text) == 2 and random_second[index]:
            others = by_kind[kinds[index]]
            result.append(((text[0], encoded[others[int(draws[index] * len(others))]][1]), 1))
        else:
            result.append((text, 0))
    return result


def pack(
    texts: list[tuple[Encoded, int]], order: np.ndarray, length: int, specials: Specials
) -> list[list[tuple[Encoded, int]]]:
    """Rows of texts, each filling at most `length` tokens, first fit into the last few open rows."""
    rows: list[list[tuple[Encoded, int]]] = []
    open_rows: list[tuple[int, list[tuple[Encoded, int]]]] = []
    for index in order:
        text = texts[index]
        size = 1 + sum(len(sentence) + 1 for sentence in text[0])
        if size > length:
            continue
        for slot, (room, row) in enumerate(open_rows):
            if size <= room:
                row.append(text)
                open_rows[slot] = (room - size, row)
                break
        else:
            row = [text]
            rows.append(row)
            open_rows.append((length - size, row))
            if len(open_rows) > OPEN_ROWS:
                open_rows.remove(min(open_rows, key=lambda item: item[0]))
    return rows


def batch(rows: list[list[tuple[Encoded, int]]], length: int, specials: Specials) -> Packed:
    shape = (len(rows), length)
    ids = np.full(shape, specials.pad, dtype=np.int64)
    types, positions, block = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    cells, labels = [], []
    for r, row in enumerate(rows):
        start = 0
        for number, (text, is_random) in enumerate(row, start=1):
            tokens = [specials.cls]
            kinds = [0]
            for segment, sentence in enumerate(text):
                tokens += [*sentence, specials.sep]
                kinds += [segment] * (len(sentence) + 1)
            end = start + len(tokens)
            ids[r, start:end] = tokens
            types[r, start:end] = kinds
            positions[r, start:end] = range(len(tokens))
            block[r, start:end] = number
            if len(text) == 2:
                cells.append((r, start))
                labels.append(is_random)
            start = end
    return Packed(
        ids, types, positions, block, np.array(cells, dtype=np.int64).reshape(-1, 2), np.array(labels, dtype=np.int64)
    )


def mask(
    packed: Packed, rates: tuple[float, float], specials: Specials, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Masked ids and the chosen cells (boolean), BERT's way: of the chosen, 80 % [MASK], 10 % a random piece, 10 % kept.

    `rates`: the share chosen of first and only sentences, and of second sentences, whose words the first often tells.
    """
    ids = packed.ids
    ordinary = (ids != specials.pad) & (ids != specials.cls) & (ids != specials.sep)
    chosen = ordinary & (rng.random(ids.shape) < np.where(packed.types == 1, rates[1], rates[0]))
    fate = rng.random(ids.shape)
    masked = np.where(chosen & (fate < 0.8), specials.mask, ids)
    random_ids = rng.integers(specials.mask + 1, specials.vocabulary, ids.shape)
    return np.where(chosen & (fate >= 0.9), random_ids, masked), chosen


def epochs(
    encoded: list[Encoded],
    kinds: list[str],
    length: int,
    rows_per_batch: int,
    specials: Specials,
    rng: np.random.Generator,
) -> Iterator[Packed]:
    """Endless batches; every epoch draws new random second sentences and a new order."""
    while True:
        rows = pack(with_random_seconds(encoded, kinds, rng), rng.permutation(len(encoded)), length, specials)
        shuffled = rng.permutation(len(rows))
        for start in range(0, len(rows) - rows_per_batch + 1, rows_per_batch):
            yield batch([rows[i] for i in shuffled[start : start + rows_per_batch]], length, specials)
