"""Embeddings of a task's texts by a model as it is: one layer, one pooling, padding left out, evaluation mode."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch

from isoviz.errors import InputError
from isoviz.methods.baseline import Baseline
from isoviz.methods.protocol import Params
from isoviz.models.adapter import HeadedModel, load_network, load_tokenizer
from isoviz.models.sources import ModelSource

Pooling = Literal["cls", "mean", "tokens", "head"]


def embed(
    source: ModelSource,
    texts: list[list[str]],
    *,
    pooling: Pooling = "cls",
    layer: int | None = None,
    max_length: int = 128,
    batch_size: int = 64,
) -> np.ndarray:
    """Point cloud of a model on texts.

    Args:
        source: where the model lies.
        texts: one or two columns of the same length.
        pooling: `cls` the first token; `mean` the mean of a text's tokens; `tokens` every token; `head` the pooled vector
            that a classifier would read (which exists for the last layer only).
        layer: counted from 1; None for the last. 0 is the embedding output.

    Returns:
        (n, d) float32: n texts, or n tokens for `tokens`.
    """
    network = load_network(source, num_labels=2, seed=0)
    model = HeadedModel(network, Baseline(Params())).eval()
    depth = model.num_layers
    if layer is not None and not 0 <= layer <= depth:
        raise InputError(f"layer: '{source.name}' has layers 0 (embeddings) to {depth} (got {layer})", field="layer")
    if pooling == "head" and layer not in (None, depth):
        raise InputError(f"layer: pooling 'head' exists for the last layer ({depth}) only (got {layer})", field="layer")
    tokenizer = load_tokenizer(source)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model.to(device)
    order = np.argsort([-len(text) for text in texts[0]], kind="stable")  # like lengths together: little padding
    parts: dict[int, torch.Tensor] = {}
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        columns = [[column[i] for i in rows] for column in texts]
        batch = tokenizer(*columns, truncation=True, max_length=max_length, padding=True, return_tensors="pt").to(
            device
        )
        with torch.inference_mode():
            if pooling == "head":
                pooled: torch.Tensor = model(**batch).reps.pooled
                vectors = list(pooled[:, None])
            else:
                states = model.network.base_model(**batch, output_hidden_states=True).hidden_states
                hidden = states[depth if layer is None else layer]
                vectors = [_pool(hidden[i], batch["attention_mask"][i].bool(), pooling) for i in range(len(rows))]
        for row, vector in zip(rows.tolist(), vectors, strict=True):
            parts[row] = vector.float().cpu()
    return torch.cat([parts[row] for row in range(len(order))]).numpy()


def _pool(hidden: torch.Tensor, keep: torch.Tensor, pooling: Pooling) -> torch.Tensor:
    """(L, d) of one text → (1, d), or (tokens, d)."""
    if pooling == "cls":
        return hidden[:1]
    tokens = hidden[keep]
    return tokens if pooling == "tokens" else tokens.mean(dim=0, keepdim=True)
