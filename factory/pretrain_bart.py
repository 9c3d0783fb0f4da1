"""Pretrains `demo/tiny-bart` by denoising generated text: `python -m factory.pretrain_bart --out DIR`.

BART's two noises (Lewis et al., 2020, arXiv 1910.13461, section 2.2): spans of words are each replaced by one mask, and
the sentences of a text of several are put in another order; the network writes the text as it was. A third of the texts
are a sentence beside its translation (as in translation language modelling, Lample and Conneau, 2019, arXiv 1901.07291,
section 3.3), often with most of one side masked. It never sees a gist, nor a sentence of a validation row.

Deterministic on one kind of machine at one thread count.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from factory import summarization, translation, velic
from factory.corpus import sentences_of_validation, texts
from factory.grammar import Sampler, render
from factory.lexicon import core_lexicon
from factory.pretraining import Prepared, Specials, command, encode
from factory.pretraining import train as train_network
from factory.wordpiece import make_sequence_tokenizer

if TYPE_CHECKING:
    import torch
    from transformers import BartForConditionalGeneration

KINDS = ("english", "stories", "two languages")
SEQ2SEQ = ("demo/translation", "demo/summarization")


@dataclass(frozen=True)
class Recipe:
    """All that decides the result."""

    texts: int = 160_000
    held_out_texts: int = 600
    shares: tuple[float, ...] = (0.25, 0.3, 0.45)  # of KINDS
    vocabulary: int = 4_800
    hidden: int = 128
    encoder_layers: int = 3
    decoder_layers: int = 2
    heads: int = 4
    intermediate: int = 384
    positions: int = 256
    random_deviation: float = 0.05
    batch_tokens: int = 1_024  # of the source, padding included
    steps: int = 4_200
    planned_steps: int = 6_000  # the learning rate falls as if it had to last so long ...
    cool_from: int = 3_100  # ... and from this step faster, to 0 at `steps`
    warmup: int = 300
    learning_rate: float = 1.5e-3
    weight_decay: float = 0.01
    mask_rate: float = 0.3
    one_side_rate: float = 0.7  # of the one side, in half of the texts in two languages
    span_length: float = 2.5  # mean of the Poisson distribution
    precision: str = "bf16"
    threads: int = 1
    seed: int = 0


Text = list[list[int]]  # one list of token ids per sentence, without special tokens


def corpus(recipe: Recipe) -> Iterator[tuple[str, list[str]]]:
    """Kind and sentences of each text, deterministic in the seed, without any sentence of a validation row."""
    rng = random.Random(f"bart corpus {recipe.seed}")
    everything, core = Sampler(rng), Sampler(rng, known=core_lexicon())
    excluded = sentences_of_validation(SEQ2SEQ)
    english = texts(recipe.texts, recipe.seed + 1)
    stories = [*summarization.PHENOMENA.values()]
    pairs = [*translation.PHENOMENA.values()]
    made = 0
    while made < recipe.texts:
        kind = rng.choices(KINDS, recipe.shares)[0]
        if kind == "english":
            sentences = list(next(english)[1])
        elif kind == "stories":
            story, _ = rng.choice(stories)(everything, rng.randrange(summarization.VARIANTS))
            sentences = [render(words) for words in story]
        else:
            said, meant = rng.choice(pairs)(core)
            sentences = [render(said), velic.render(meant)]
        if excluded.isdisjoint(sentences) and " ".join(sentences) not in excluded:
            made += 1
            yield kind, sentences


def infill(tokens: list[int], rate: float, mask: int, mean: float, rng: np.random.Generator) -> list[int]:
    """About `rate` of the tokens gone, in spans of Poisson length (at least 1), one mask in the place of each."""
    result: list[int] = []
    position, start = 0, rate / mean
    chances = rng.random(len(tokens))
    while position < len(tokens):
        if chances[position] < start / (1 - rate + start):
            position += max(1, int(rng.poisson(mean)))
            result.append(mask)
        else:
            result.append(tokens[position])
            position += 1
    return result


def noised(kind: str, text: Text, recipe: Recipe, mask: int, rng: np.random.Generator) -> tuple[Text, Text]:
    """Source and target of one text."""
    if kind != "two languages":
        order = rng.permutation(len(text)) if rng.random() < 0.5 else np.arange(len(text))
        return [infill(text[i], recipe.mask_rate, mask, recipe.span_length, rng) for i in order], text
    both = text if rng.random() < 0.5 else text[::-1]
    rates = [recipe.mask_rate, recipe.mask_rate]
    if rng.random() < 0.5:
        hidden = int(rng.random() < 0.5)
        rates[hidden], rates[1 - hidden] = recipe.one_side_rate, recipe.mask_rate / 3
    return [infill(side, rate, mask, recipe.span_length, rng) for side, rate in zip(both, rates, strict=True)], both


def flat(kind: str, text: Text, ids: Specials) -> list[int]:
    """Begin, the sentences, end; two languages have an end between them as well."""
    between = [ids.sep] if kind == "two languages" else []
    tokens = [ids.cls]
    for number, sentence in enumerate(text):
        tokens += [*(between if number else []), *sentence]
    return [*tokens, ids.sep]


def matrix(rows: list[list[int]], pad: int) -> np.ndarray:
    """(rows, longest), padded at the end."""
    padded: np.ndarray = np.full((len(rows), max(map(len, rows))), pad, dtype=np.int64)
    for number, row in enumerate(rows):
        padded[number, : len(row)] = row
    return padded


def batches(encoded: list[tuple[str, Text]], recipe: Recipe, ids: Specials, rng: np.random.Generator) -> Iterator[Any]:
    """(source, target) without end: each epoch in a new order with new noise, texts of like length together."""
    lengths = np.array([sum(map(len, text)) + 3 for _, text in encoded])
    while True:
        noise = lengths + rng.random(len(lengths)) * 4  # so that the same texts do not meet again
        groups: list[list[int]] = [[]]
        for index in np.argsort(noise, kind="stable"):
            if (len(groups[-1]) + 1) * int(lengths[index]) > recipe.batch_tokens and groups[-1]:
                groups.append([])
            groups[-1].append(int(index))
        for number in rng.permutation(len(groups)):
            yield noised_batch([encoded[i] for i in groups[number]], recipe, ids, rng)


def noised_batch(rows: list[tuple[str, Text]], recipe: Recipe, ids: Specials, rng: np.random.Generator) -> Any:
    pairs = [(kind, *noised(kind, text, recipe, ids.mask, rng)) for kind, text in rows]
    source = matrix([flat(kind, noisy, ids) for kind, noisy, _ in pairs], ids.pad)
    return source, matrix([flat(kind, clean, ids) for kind, _, clean in pairs], ids.pad)


def new_model(recipe: Recipe, ids: Specials) -> BartForConditionalGeneration:
    """The network before its first step: random weights plus multiples of the identity, as in `pretrain_bert.new_model`."""
    import torch
    from transformers import BartConfig, BartForConditionalGeneration

    config = BartConfig(
        vocab_size=ids.vocabulary,
        d_model=recipe.hidden,
        encoder_layers=recipe.encoder_layers,
        decoder_layers=recipe.decoder_layers,
        encoder_attention_heads=recipe.heads,
        decoder_attention_heads=recipe.heads,
        encoder_ffn_dim=recipe.intermediate,
        decoder_ffn_dim=recipe.intermediate,
        max_position_embeddings=recipe.positions,
        init_std=recipe.random_deviation,
        dropout=0.0,
        bos_token_id=ids.cls,
        pad_token_id=ids.pad,
        eos_token_id=ids.sep,
        decoder_start_token_id=ids.sep,  # as the original BART
        forced_eos_token_id=ids.sep,
    )
    config._attn_implementation = "eager"
    model = BartForConditionalGeneration(config)
    identity = torch.eye(recipe.hidden)
    layers: list[Any] = [*model.model.encoder.layers, *model.model.decoder.layers]
    attentions = [
        a for layer in layers for a in (layer.self_attn, getattr(layer, "encoder_attn", None)) if a is not None
    ]
    with torch.no_grad():
        for attention in attentions:
            for projection, strength in (("v_proj", 1.0), ("out_proj", 1.0), ("q_proj", 0.5), ("k_proj", 0.5)):
                getattr(attention, projection).weight.add_(strength * identity)
    return model


def loss_and_hits(
    model: BartForConditionalGeneration, source: np.ndarray, target: np.ndarray, ids: Specials
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean cross-entropy of the target's tokens, and the share of them guessed right from all before them."""
    import torch
    from torch.nn.functional import cross_entropy

    before = np.concatenate([np.full((len(target), 1), ids.sep), target[:, :-1]], axis=1)
    inputs, labels = torch.from_numpy(source), torch.from_numpy(target)
    real = labels != ids.pad
    hidden = model.model(
        input_ids=inputs, attention_mask=(inputs != ids.pad).long(), decoder_input_ids=torch.from_numpy(before),
        use_cache=False,
    ).last_hidden_state  # fmt: skip
    scores = model.lm_head(hidden[real]).float()
    return cross_entropy(scores, labels[real]), (scores.argmax(-1) == labels[real]).float().mean()


def learning_rate(step: int, recipe: Recipe) -> float:
    """The share of the peak rate in a step (counted from 0): up, slowly down, quickly down."""

    def planned(at: int) -> float:
        return min((at + 1) / recipe.warmup, (recipe.planned_steps - at) / (recipe.planned_steps - recipe.warmup))

    if step < recipe.cool_from:
        return planned(step)
    return planned(recipe.cool_from) * (recipe.steps - step) / (recipe.steps - recipe.cool_from)


def train(
    model: BartForConditionalGeneration, recipe: Recipe, ids: Specials, encoded: list[tuple[str, Text]]
) -> dict[str, Any]:
    """Trains in place; returns the log: one entry every 100 steps."""
    rng = np.random.default_rng(recipe.seed + 1)
    held_out, rest = encoded[: recipe.held_out_texts], encoded[recipe.held_out_texts :]
    checks = {
        kind: noised_batch([row for row in held_out if row[0] == kind][:96], recipe, ids, rng)
        for kind in KINDS
        if any(row[0] == kind for row in held_out)
    }
    stream = batches(rest, recipe, ids, rng)

    def next_loss() -> tuple[torch.Tensor, dict[str, torch.Tensor], int]:
        source, target = next(stream)
        loss, _ = loss_and_hits(model, source, target, ids)
        return loss, {"loss": loss}, int((target != ids.pad).sum())

    def held_out_losses() -> dict[str, Any]:
        values = {kind: loss_and_hits(model, check, clean, ids) for kind, (check, clean) in checks.items()}
        return {
            f"held_out_{kind}": {"loss": round(float(loss), 4), "tokens_right": round(float(hits), 4)}
            for kind, (loss, hits) in values.items()
        }

    return train_network(
        model,
        recipe,
        lambda step: learning_rate(step, recipe),
        next_loss,
        held_out_losses,
        log_every=100,
        check_every=500,
    )


def prepare(recipe: Recipe) -> Prepared:
    """Generates the text, and makes vocabulary and network."""
    made = list(corpus(recipe))
    english = [sentence for kind, text in made for sentence in (text[:1] if kind == "two languages" else text)]
    tokenizer = make_sequence_tokenizer(english, velic.pieces(), recipe.vocabulary, recipe.positions)
    encoded = [(kind, text) for (kind, _), text in zip(made, encode(tokenizer, made), strict=True)]
    ids = Specials.of(tokenizer)
    model = new_model(recipe, ids)
    model.generation_config.max_length = 64
    return Prepared(made, tokenizer, model, lambda: train(model, recipe, ids, encoded))


if __name__ == "__main__":
    command(__doc__, Recipe, prepare, "texts", "threads", "seed")
