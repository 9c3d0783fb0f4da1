"""Pretrains `demo/tiny-bert` by masked language modelling on generated text: `python -m factory.pretrain_bert
--out DIR`.

Deterministic on one kind of machine at one thread count. The pooler learns by next-sentence prediction as in the
original BERT (Devlin et al., 2019, section 3.1): does the second sentence follow the first, or does it come from
another text of the same kind? Short texts are packed into rows of one length and masked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from factory.corpus import texts
from factory.pretraining import Prepared, Specials, command, encode
from factory.pretraining import train as train_network
from factory.wordpiece import make_tokenizer

if TYPE_CHECKING:
    import torch
    from transformers import BertForPreTraining


@dataclass(frozen=True)
class Recipe:
    """All that decides the result."""

    texts: int = 300_000
    held_out_texts: int = 2_000
    vocabulary: int = 5_600
    hidden: int = 128
    layers: int = 4
    heads: int = 4
    intermediate: int = 512
    positions: int = 256
    random_deviation: float = 0.05
    length: int = 64
    rows: int = 32
    steps: int = 18_000
    warmup: int = 400
    learning_rate: float = 2e-3
    weight_decay: float = 0.01
    mask_rates: tuple[float, float] = (0.15, 0.3)  # of first and only sentences, of second sentences
    next_sentence_weight: float = 0.5
    precision: str = "bf16"
    threads: int = 1
    seed: int = 0


# -------------------------------------------------------------------------------- packing
#
# Each row holds several texts one after the other. Attention is block-diagonal and positions restart at each text, so that [CLS]
# stands at position 0 and sees its own text only, exactly as in fine-tuning.

Encoded = tuple[list[int], ...]  # one list of token ids per sentence, without special tokens
OPEN_ROWS = 16


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


# -------------------------------------------------------------------------------- network


def new_model(recipe: Recipe, specials: Specials) -> BertForPreTraining:
    """The network before its first step: random weights plus multiples of the identity.

    With purely random maps so small a network needs tens of millions of tokens before it finds out that words come back in the
    text; started near the identity, where alike attends to alike and is passed on as it is, it knows after three million (in
    the spirit of "mimetic initialisation", Trockman and Kolter, 2023, arXiv 2305.09828).
    """
    import torch
    from transformers import BertConfig, BertForPreTraining

    config = BertConfig(
        vocab_size=specials.vocabulary,
        hidden_size=recipe.hidden,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        intermediate_size=recipe.intermediate,
        max_position_embeddings=recipe.positions,
        initializer_range=recipe.random_deviation,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=specials.pad,
    )
    # eager: on a CPU the fused attention kernel spends half of the whole step in its backward pass
    config._attn_implementation = "eager"
    model = BertForPreTraining(config)
    identity = torch.eye(recipe.hidden)
    layers: Any = model.bert.encoder.layer
    with torch.no_grad():
        for layer in layers:
            layer.attention.self.value.weight.add_(identity)
            layer.attention.output.dense.weight.add_(identity)
            layer.attention.self.query.weight.add_(0.5 * identity)
            layer.attention.self.key.weight.add_(0.5 * identity)
        model.cls.predictions.transform.dense.weight.add_(identity)
    return model


def packed_states(model: BertForPreTraining, packed: Packed, ids: np.ndarray) -> torch.Tensor:
    """The last layer's vectors (rows, length, hidden) for packed texts, each seeing only itself."""
    import torch

    block = torch.from_numpy(packed.block)
    own_text = (block[:, :, None] == block[:, None, :])[:, None]
    hidden_by = torch.where(own_text, 0.0, torch.finfo(torch.bfloat16).min)  # added to the attention scores
    return model.bert(
        input_ids=torch.from_numpy(ids),
        token_type_ids=torch.from_numpy(packed.types),
        position_ids=torch.from_numpy(packed.positions),
        attention_mask=hidden_by,
    ).last_hidden_state


def losses(
    model: BertForPreTraining, packed: Packed, masked: np.ndarray, chosen: np.ndarray
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Masked-word loss, next-sentence loss, number of masked words guessed right, number of pairs guessed right."""
    import torch
    from torch.nn.functional import cross_entropy

    hidden = packed_states(model, packed, masked)
    where = torch.from_numpy(chosen)
    words = torch.from_numpy(packed.ids)[where]
    word_scores = model.cls.predictions(hidden[where]).float()
    assert model.bert.pooler is not None
    first = hidden[packed.pair_cells[:, 0], packed.pair_cells[:, 1]]
    pair_scores = model.cls.seq_relationship(model.bert.pooler(first[:, None])).float()
    pairs = torch.from_numpy(packed.pair_random)
    return (
        cross_entropy(word_scores, words),
        cross_entropy(pair_scores, pairs),
        (word_scores.argmax(-1) == words).float().mean(),
        (pair_scores.argmax(-1) == pairs).float().mean(),
    )


def train(
    model: BertForPreTraining, recipe: Recipe, specials: Specials, encoded: list[Any], kinds: list[str]
) -> dict[str, Any]:
    """Trains in place; returns the log: one entry every 50 steps."""
    rng = np.random.default_rng(recipe.seed + 1)
    held_out = recipe.held_out_texts
    rows = pack(
        with_random_seconds(encoded[:held_out], kinds[:held_out], rng), np.arange(held_out), recipe.length, specials
    )
    check = batch(rows, recipe.length, specials)
    check_masked, check_chosen = mask(check, recipe.mask_rates, specials, rng)
    stream = epochs(encoded[held_out:], kinds[held_out:], recipe.length, recipe.rows, specials, rng)

    def next_losses() -> tuple[torch.Tensor, dict[str, torch.Tensor], int]:
        packed = next(stream)
        words, pairs, _, _ = losses(model, packed, *mask(packed, recipe.mask_rates, specials, rng))
        logged = {"word_loss": words, "next_sentence_loss": pairs}
        return words + recipe.next_sentence_weight * pairs, logged, int((packed.block > 0).sum())

    def held_out_losses() -> dict[str, float]:
        values = losses(model, check, check_masked, check_chosen)
        names = ("word_loss", "next_sentence_loss", "word_accuracy", "next_sentence_accuracy")
        return {f"held_out_{name}": round(float(value), 4) for name, value in zip(names, values, strict=True)}

    def rate(step: int) -> float:
        return min((step + 1) / recipe.warmup, max(0.0, (recipe.steps - step) / (recipe.steps - recipe.warmup)))

    return train_network(model, recipe, rate, next_losses, held_out_losses, log_every=50, check_every=250)


def prepare(recipe: Recipe) -> Prepared:
    """Generates the text, and makes vocabulary and network."""
    corpus = list(texts(recipe.texts, recipe.seed))
    kinds = [kind for kind, _ in corpus]
    sentences = (sentence for _, text in corpus for sentence in text)
    tokenizer = make_tokenizer(sentences, recipe.vocabulary, recipe.positions)
    encoded = [tuple(text) for text in encode(tokenizer, corpus)]
    specials = Specials.of(tokenizer)
    model = new_model(recipe, specials)
    return Prepared(corpus, tokenizer, model, lambda: train(model, recipe, specials, encoded, kinds))


if __name__ == "__main__":
    command(__doc__, Recipe, prepare, "texts", "steps", "threads", "seed")
