"""Point clouds of a model as it is: every layer and pooling from one pass, evaluation mode, padding left out.

The vectors of a sentence-transformers model take a pass of their own, through that library.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isoviz import devices
from isoviz.errors import InputError, ModelError
from isoviz.metrics.cloud import draw
from isoviz.metrics.grouped import entropy
from isoviz.metrics.streaming import CovarianceAccumulator
from isoviz.models import encoder, folders, hub, placing, sentences, sources, tokenizer_limits
from isoviz.models.encoder import Encoder
from isoviz.models.loading import reading
from isoviz.models.placing import Dtype
from isoviz.models.sources import ModelSource
from isoviz.models.views import POOLINGS, Pooling, TokenView, Views, poolings_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

MEMORY_LIMIT = 4 * 2**30
"""Bytes of points that one call may keep; above it there is an error that says how to ask for less."""


def layer_views(
    source: ModelSource,
    texts: Sequence[Sequence[str]],
    *,
    poolings: Sequence[Pooling] | Literal["all", "states"] = "all",
    layers: Literal["all", "last"] | Iterable[int] = "all",
    max_length: int | None = 128,
    batch_size: int = 64,
    max_tokens_per_layer: int | None = 5_000,
    prompts: int = 200,
    seed: int = 0,
    direction: str | None = None,
    allow_random: bool = False,
    prompt: str | None = None,
    truncate: int | None = None,
    dtype: Dtype = "auto",
    progress: hub.Report | None = None,
) -> Views:
    """Every layer's clouds from one pass: each row goes through the encoder once, whatever is requested.

    Weights that do not fit are spread over GPUs, memory and disk, and the states of a layer are pooled or summed before the next layer
    is computed: the peak is the weights in memory, the activations of one batch and what is kept.

    What is kept: (rows, d) float32 per layer for `cls`, `last` and `mean`, (rows, h) for `head`; for `tokens`, per layer, running
    sums of d² numbers, one token per row, and at most `max_tokens_per_layer` tokens. Results do not depend on `batch_size`
    (beyond rounding) nor on padding.

    Args:
        source: where the model lies; one of the hub is fetched first.
        texts: one or two columns of the same length.
        poolings: see `isoviz.models.views.POOLINGS`; `head` and `sentence` exist for the last layer only. "all": what the
            model offers; "states": of that, all but `head`.
        layers: numbers from 0, the embedding output, to the model's depth; or all of them, or the last.
        max_length: tokens read of a row at most; None, or more than the model has positions, for as many as it can read. For
            `sentence`, a sentence-transformers model may read fewer by its own settings.
        batch_size: rows per step.
        max_tokens_per_layer: sample kept of the tokens; None keeps all.
        prompts: for `tokens`, the most texts whose prompt entropy is computed, drawn with the seed. In 768 dimensions 200 texts take
            0.2 s per layer at 128 tokens each, and 4 s at 512.
        seed: of the token samples.
        direction: "en-ro" where the texts are to be translated, for tokenizers that mark their language.
        allow_random: read a model whose checkpoint lacks encoder weights; `warnings` says so.
        prompt, truncate: of pooling `sentence`, see `isoviz.models.sentences.vectors`.
        dtype: number format of the weights, see `isoviz.models.placing.Dtype`; sums are always float64.
        progress: called after each step.

    Raises:
        InputError: a layer or pooling that there is not, no rows, or more points than `MEMORY_LIMIT` holds.
        ModelError: the model cannot be loaded, or gives no numbers.
    """
    columns = _checked_texts(texts)
    if not isinstance(poolings, str):
        _check_poolings(poolings, POOLINGS, "")
    for name, number in (("batch_size", batch_size), ("max_tokens_per_layer", max_tokens_per_layer)):
        if number is not None and number < 1:
            raise InputError.at(name, f"must be at least 1 (got {number})")
    if progress:
        progress(0, len(columns[0]), "loading the model")
    source = sources.fetch(source, _fetching(progress, len(columns[0])))
    offered, refused = offered_poolings(source, len(columns))
    if isinstance(poolings, str):
        poolings = [name for name in offered if poolings == "all" or name != "head"]
    if refused and "sentence" in poolings:
        raise refused
    _check_poolings(poolings, offered, f" of '{source.name}'")
    if "sentence" not in poolings and (prompt is not None or truncate is not None):
        field = "truncate-dim" if prompt is None else "prompt"
        raise InputError.at(field, "only for pooling 'sentence' of a sentence-transformers model")
    with placing.placed(source, dtype) as place:
        if place.spread and not (poolings := [name for name in poolings if name not in ("head", "sentence")]):
            raise ModelError.at("model", f"{place.note}, so only cls, last, mean and tokens are read here")
        model = encoder.load(
            source, head="head" in poolings, direction=direction, allow_random=allow_random, **place.options
        )
        tokenizer = model.tokenizer
        numbers = _checked_layers(source, layers, model.num_layers)
        if set(poolings) <= {"head", "sentence"} and model.num_layers not in numbers:
            allowed = f"exists for the last layer ({model.num_layers}) only"
            raise InputError.at("layer", f"pooling '{poolings[0]}' {allowed} (got {', '.join(map(str, numbers))})")
        library_model = sentences.load(source, place.dtype) if "sentence" in poolings else None
        if library_model is not None and set(poolings) == {"sentence"}:
            max_length = min(max_length or 10**6, library_model.max_seq_length or 10**6)
        with reading(source, "the tokenizer of "):
            rows, limit, truncated = _tokenise(tokenizer, columns, max_length, model.longest)
        empty = tokenizer_limits.fill_empty(rows, tokenizer)

        def collect(device: torch.device) -> tuple[torch.device, _Collector]:
            collector = _Collector(
                model, rows["input_ids"], set(poolings), numbers, max_tokens_per_layer, prompts, seed
            )
            order = np.argsort(-collector.lengths, kind="stable")  # like lengths together: little padding
            if library_model is not None:
                collector.clouds[model.num_layers, "sentence"] = sentences.vectors(
                    library_model.to(device),
                    columns[0],
                    prompt=prompt,
                    truncate=truncate,
                    max_length=max_length,
                    batch_size=batch_size,
                    progress=progress
                    and (lambda done: progress(done, len(order), "reading texts for sentence vectors")),
                )
            if not place.spread:
                model.module.to(device)
            elif progress:
                progress(0, len(order), place.note)
            for start in range(0, len(order), batch_size) if set(poolings) != {"sentence"} else ():
                batch_rows = order[start : start + batch_size]
                batch = {name: tensor.to(device) for name, tensor in _pad(rows, batch_rows, tokenizer).items()}
                collector.read(model, batch_rows, batch)
                if progress:
                    progress(min(start + batch_size, len(order)), len(order), "reading texts")
            return device, collector

        device, collector = collect(place.device) if place.spread else devices.where_free(collect)
    count = len(collector.lengths)
    warnings = [place.note] if place.spread else []
    if truncated:
        warnings.append(f"{truncated} of {count} rows are longer than {limit} tokens and were cut")
    if empty:
        warnings.append(f"{empty} of {count} rows have no token at all; the end-of-text token stands for them")
    warnings += tokenizer_limits.pair_note(tokenizer, len(columns))
    warnings += tokenizer_limits.unknown_note(tokenizer_limits.unknown_share(rows["input_ids"], tokenizer))
    warnings += model.notes
    if refused:
        warnings.append(f"sentence vectors are not shown, because the {str(refused).removeprefix('model: ')}")
    return Views(
        model=source.name,
        rows=count,
        depth=model.num_layers,
        lengths=collector.lengths,
        max_length=limit,
        truncated=truncated,
        device=device.type,
        clouds=collector.clouds,
        tokens=collector.tokens,
        warnings=tuple(warnings),
    )


def encode(
    model: str | ModelSource,
    texts: Sequence[str],
    *,
    pooling: Pooling | None = None,
    prompt: str | None = None,
    truncate: int | None = None,
    max_length: int | None = None,
    batch_size: int = 64,
    progress: hub.Report | None = None,
) -> NDArray[np.float32]:
    """(n, d): one vector per text, of the last layer.

    Args:
        model: a name that `isoviz.models.sources.resolve` finds, or where the model lies.
        pooling: all but `tokens`; None for the usual one: `sentence` where the model has modules, else `cls` (decoders: `last`).
        prompt, truncate: of pooling `sentence`, see `isoviz.models.sentences.vectors`.
        max_length: tokens read of a text at most; None for as many as the model reads.
        progress: called with texts done, texts in all, and what is being done.

    Raises:
        InputError: no texts, or a pooling, prompt or dimension that the model does not have.
        ModelError: the model cannot be found or loaded, or gives no numbers.
    """
    source = sources.fetch(sources.resolve(model) if isinstance(model, str) else model, _fetching(progress, len(texts)))
    selected_pooling = pooling or usual_pooling(source)
    if selected_pooling == "tokens":
        raise InputError.at("pooling", "'tokens' gives a point per token, not one per text; choose another")
    views = layer_views(
        source,
        [list(texts)],
        poolings=[selected_pooling],
        layers="last",
        max_length=max_length,
        batch_size=batch_size,
        prompt=prompt,
        truncate=truncate,
        progress=progress,
    )
    return views.points(views.depth, selected_pooling)


def usual_pooling(source: ModelSource, columns: int = 1) -> Pooling:
    """What a model's vectors are unless another pooling is chosen.

    Raises:
        ModelError: it has modules that cannot be read: without them its vectors would not be those that its authors mean.
    """
    offered, refused = offered_poolings(source, columns)
    if refused:
        raise refused
    return offered[0]


def offered_poolings(source: ModelSource, columns: int = 1) -> tuple[tuple[Pooling, ...], ModelError | None]:
    """The poolings that a model on this machine offers for rows of one or two texts, the usual one first.

    Second, why it has no `sentence` although it has modules; None otherwise.
    """
    folder = Path(source.location)
    bare = poolings_of(folders.config_of(folder) or {})
    if columns > 1:  # the library embeds one text at a time
        return bare, None
    try:
        return (("sentence", *bare) if sentences.describe(folder) else bare), None
    except ModelError as error:
        return bare, error


class _Collector:
    """Puts what each batch gave where it belongs, in the order of the rows."""

    def __init__(
        self,
        model: Encoder,
        token_ids: list[list[int]],
        poolings: set[Pooling],
        layers: list[int],
        max_tokens: int | None,
        prompts: int,
        seed: int,
    ) -> None:
        count = len(token_ids)
        self.lengths = np.fromiter(map(len, token_ids), dtype=np.int64, count=count)
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)])  # of each row among all tokens
        self.layers = layers
        total = int(self.starts[-1])
        token_count = total if max_tokens is None else min(total, max_tokens)
        held = [name for name in POOLINGS if name in poolings and name not in ("tokens", "head", "sentence")]
        per_layer = count * len(held) + (count + token_count if "tokens" in poolings else 0)
        _check_memory(4 * model.width * len(layers) * per_layer, count)
        self.clouds: dict[tuple[int, Pooling], NDArray[np.float32]] = {
            (layer, name): np.empty((count, model.width), dtype=np.float32) for layer in layers for name in held
        }
        self.depth = model.num_layers
        if "head" in poolings:
            self.clouds[self.depth, "head"] = np.empty((count, model.head_width), dtype=np.float32)
        generator = np.random.default_rng(seed)
        # One token of each row, and a sample of all: chosen before the pass, so that neither depends on the batches.
        self.shares = generator.random(count)
        self.sampled = np.sort(generator.choice(total, token_count, replace=False, shuffle=False))
        self.prompts = draw(count, prompts, seed)
        self.tokens: dict[int, TokenView] = {}
        if "tokens" in poolings:
            groups = np.searchsorted(self.starts, self.sampled, side="right") - 1
            ids = np.concatenate([np.asarray(row, dtype=np.int64) for row in token_ids])[self.sampled]
            for layer in layers:
                shapes = ((count, model.width), (token_count, model.width))
                row_tokens, sample = (np.empty(shape, dtype=np.float32) for shape in shapes)
                self.tokens[layer] = TokenView(
                    CovarianceAccumulator(model.width),
                    row_tokens,
                    sample,
                    groups,
                    ids,
                    np.full(len(self.prompts), np.nan),
                )

    def read(self, model: Encoder, rows: NDArray[np.int64], batch: dict[str, Tensor]) -> None:
        """One batch, padded (B, L), goes through the model; what is needed of a layer is kept as soon as it is there."""
        keep = batch["attention_mask"].bool()
        numbers = np.concatenate([np.arange(self.starts[row], self.starts[row + 1]) for row in rows])
        at = np.searchsorted(self.sampled, numbers)
        hit = np.flatnonzero(self.sampled[np.minimum(at, len(self.sampled) - 1)] == numbers)
        counts = keep.sum(dim=1).cpu().numpy()
        starts = np.cumsum(counts) - counts
        single = starts + np.floor(self.shares[rows] * counts).astype(np.int64)  # one per row
        read = np.flatnonzero(np.isin(rows, self.prompts))
        texts = [
            (place, slice(starts[at], starts[at] + counts[at]))
            for place, at in zip(np.searchsorted(self.prompts, rows[read]), read, strict=True)
        ]

        def collect(layer: int, state: Tensor) -> None:
            if layer not in self.layers:
                return
            hidden = state.float()  # before any mean: half precision has no digits for sums
            some = keep.to(hidden.device)
            if not bool(torch.isfinite(hidden[some]).all()):
                raise ModelError.at(
                    "model",
                    f"layer {layer} gives numbers that are NaN or infinite; its weights diverged in training, or are damaged",
                )
            for pooling in ("cls", "last", "mean"):
                if (layer, pooling) in self.clouds:
                    self.clouds[layer, pooling][rows] = pooled_rows(hidden, some, pooling).cpu().numpy()
            if layer in self.tokens:
                view, points = self.tokens[layer], hidden[some]
                view.stream.update(points.numpy() if points.device.type == "cpu" else points)
                view.sample[at[hit]] = points[torch.from_numpy(hit)].cpu().numpy()
                view.one_per_row[rows] = points[torch.from_numpy(single)].cpu().numpy()
                for place, text in texts:
                    view.entropies[place] = entropy(points[text].cpu().double().numpy())

        pooled = model.each_layer(batch, collect)
        if pooled is not None and (self.depth, "head") in self.clouds:
            self.clouds[self.depth, "head"][rows] = pooled.float().cpu().numpy()


def pooled_rows(hidden: Tensor, keep: Tensor, pooling: Pooling) -> Tensor:
    """(B, d): one vector for each row of `hidden` (B, L, d), by pooling `cls`, `last` or `mean` over the tokens to `keep` (B, L)."""
    if pooling == "cls":
        return hidden[:, 0]
    if pooling == "last":
        return hidden[torch.arange(len(hidden), device=hidden.device), keep.sum(dim=1) - 1]
    return hidden.masked_fill(~keep.unsqueeze(-1), 0.0).sum(dim=1) / keep.sum(dim=1, keepdim=True)


def _fetching(progress: hub.Report | None, rows: int) -> hub.Report | None:
    if progress is None:
        return None
    return lambda *download: progress(0, rows, hub.in_words(*download))


def _check_poolings(poolings: Sequence[Pooling], offered: Sequence[Pooling], of: str) -> None:
    unknown = [name for name in dict.fromkeys(poolings) if name not in offered]
    if unknown or not poolings:
        got = ", ".join(unknown) or "none"
        raise InputError.at(
            "pooling", f"expected some of {', '.join(offered)}{of and f', the poolings{of}'} (got {got})"
        )


def _checked_texts(texts: Sequence[Sequence[str]]) -> list[list[str]]:
    columns = [list(column) for column in texts]
    sizes = {len(column) for column in columns}
    if len(columns) not in (1, 2) or len(sizes) != 1:
        lengths = ", ".join(str(len(column)) for column in columns) or "none"
        raise InputError(f"texts: expected one or two columns of the same length (got lengths: {lengths})")
    if sizes == {0}:
        raise InputError("texts: there are no rows to read")
    return columns


def _checked_layers(source: ModelSource, layers: Literal["all", "last"] | Iterable[int], depth: int) -> list[int]:
    if isinstance(layers, str):
        return list(range(depth + 1)) if layers == "all" else [depth]
    numbers = sorted(set(layers))
    for number in numbers:
        if not 0 <= number <= depth:
            raise InputError.at("layer", f"'{source.name}' has layers 0 (embeddings) to {depth} (got {number})")
    return numbers


def _check_memory(needed: int, rows: int) -> None:
    if needed > MEMORY_LIMIT:
        raise InputError.at(
            "max_eval",
            f"these clouds of {rows} rows need {needed / 2**30:.1f} GiB (allowed: {MEMORY_LIMIT / 2**30:.1f}); "
            "take fewer rows, layers or poolings",
        )


def _tokenise(
    tokenizer: PreTrainedTokenizerBase, columns: list[list[str]], max_length: int | None, positions: int | None
) -> tuple[dict[str, list[list[int]]], int, int]:
    """Token numbers per row without padding, the length at which rows are cut, and how many were."""
    limit = min(max_length or 10**6, positions or 512)
    least = tokenizer.num_special_tokens_to_add(len(columns) == 2) + len(columns)
    if limit < least:
        raise InputError.at("max_length", f"must be at least {least} for this model (got {limit})")
    rows = dict(tokenizer(*columns, truncation=True, max_length=limit))
    full = [row for row, ids in enumerate(rows["input_ids"]) if len(ids) == limit]
    truncated = 0
    if full:  # only these can have been cut
        untruncated = tokenizer(*([column[row] for row in full] for column in columns), truncation=False, verbose=False)
        truncated = sum(len(ids) > limit for ids in untruncated["input_ids"])
    return rows, limit, truncated


def _pad(
    rows: dict[str, list[list[int]]], batch_rows: NDArray[np.int64], tokenizer: PreTrainedTokenizerBase
) -> dict[str, Tensor]:
    """On the right, so that the first token is the first everywhere; (B, longest of these rows).

    What fills the places does not matter, for nothing reads them.
    """
    fill = {"input_ids": tokenizer.pad_token_id or 0}
    return {
        name: torch.nn.utils.rnn.pad_sequence(
            [torch.tensor(values[row]) for row in batch_rows], batch_first=True, padding_value=fill.get(name, 0)
        )
        for name, values in rows.items()
    }
