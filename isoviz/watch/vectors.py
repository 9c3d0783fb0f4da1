"""One vector per text, from what the modules of a model return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError
from isoviz.metrics.cloud import is_tensor


def is_a(module: Any, name: str) -> bool:
    return any(base.__name__ == name for base in type(module).__mro__)


def mask_of(args: tuple[Any, ...], given: Mapping[str, Any]) -> Any:
    """The attention mask in a forward call's arguments, if any."""
    features = args[0] if args and isinstance(args[0], Mapping) else {}
    return given.get("attention_mask", features.get("attention_mask"))


def vectors_in(output: Any) -> Any:
    """Of what a module returns: the sentence embeddings, the last layer, or the first tensor."""
    if isinstance(output, Mapping) or hasattr(output, "last_hidden_state"):
        for name in ("sentence_embedding", "last_hidden_state"):
            value = output.get(name) if isinstance(output, Mapping) else getattr(output, name, None)
            if value is not None:
                return value
    return output[0] if isinstance(output, tuple) else output


def pooled(vectors: Any, mask: Any, pooling: str) -> Any:
    """(B, d) from (B, d) or (B, L, d), detached; the type of the input."""
    if is_tensor(vectors):
        vectors = vectors.detach()
    elif not hasattr(vectors, "ndim"):
        vectors = np.asarray(vectors)
    if vectors.ndim == 2:
        return vectors
    if vectors.ndim != 3:
        raise InputError(f"vectors must have shape (B, d) or (B, L, d), got {tuple(vectors.shape)}", field="vectors")
    if pooling == "cls":
        return vectors[:, 0]
    if mask is None or tuple(mask.shape) != tuple(vectors.shape[:2]):
        return vectors[:, -1] if pooling == "last" else vectors.mean(1)
    if pooling == "last":  # padding may stand on either side
        positions = np.arange(1, vectors.shape[1] + 1) * np.asarray(mask.cpu() if is_tensor(mask) else mask)
        return vectors[list(range(len(vectors))), positions.argmax(1).tolist()]
    weights = mask[:, :, None] / mask.sum(1)[:, None, None].clip(1)
    return (vectors * weights).sum(1)


def as_rows(vectors: Any) -> NDArray[np.float32]:
    raw = vectors.float().cpu().numpy() if is_tensor(vectors) else np.asarray(vectors)
    if raw.dtype.kind not in "fiu":
        raise InputError(f"vectors must be real numbers, got an array of type {raw.dtype}", field="vectors")
    return np.array(raw, dtype=np.float32)
