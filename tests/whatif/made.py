"""Embeddings drawn by hand, with labels that a linear head can read."""

from __future__ import annotations

import numpy as np

from isoviz.readouts.heads import FrozenHead
from isoviz.whatif.embeddings import Cloud, Embeddings


def made(
    n: int = 300,
    m: int = 160,
    d: int = 12,
    *,
    labels: int = 2,
    seed: int = 0,
    kind: str = "classification",
    mean: float = 2.0,
) -> Embeddings:
    """Correlated dimensions of different spread away from the origin; the head is the one that made the labels, with noise."""
    random = np.random.default_rng(seed)
    mixing = random.normal(size=(d, d)) * random.uniform(0.2, 2.0, size=d)
    cloud: Cloud = "head"
    train = (random.normal(size=(n, d)) @ mixing + mean).astype(np.float32)
    validation = (random.normal(size=(m, d)) @ mixing + mean).astype(np.float32)
    weight = random.normal(size=(labels if kind == "classification" else 1, d))
    bias = -weight @ np.full(d, mean)

    def labelled(points: np.ndarray) -> np.ndarray:
        logits = points @ weight.T + bias
        noisy = logits + 0.5 * logits.std() * random.normal(size=logits.shape)
        return noisy.argmax(axis=1) if kind == "classification" else noisy[:, 0]

    head = FrozenHead(weight, bias, kind)
    return Embeddings(
        key="made",
        cloud=cloud,
        facts={"primary": "accuracy", "kind": kind, "seed": 0, "differs": False, "run": "r", "task": "t"},
        train=train,
        validation=validation,
        train_labels=labelled(train),
        labels=labelled(validation),
        predicted=head.predict(validation.astype(np.float64)),
        head=head,
    )
