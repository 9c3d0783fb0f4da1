"""The model families whose parts we know by name. Plain facts, no torch: the adapter acts on them, messages list them."""

from __future__ import annotations

from typing import Literal, get_args

HeadKind = Literal["classification", "regression", "span", "seq2seq"]
"""What sits on the encoder: one of several classes, one number, a stretch of the second text, or a text of its own."""

HEAD_KINDS: tuple[HeadKind, ...] = get_args(HeadKind)

Head = Literal["pooler", "dense", "relu"]

CLASSIFIERS: dict[str, Head] = {
    "bert": "pooler",
    "albert": "pooler",
    "roberta": "dense",
    "xlm-roberta": "dense",
    "camembert": "dense",
    "distilbert": "relu",
}
"""How a family gets from the last layer to the vector that feeds the classifier's output layer.

pooler: the encoder's own pooler (dense + tanh on the first token). dense: dropout, dense and tanh inside the classification
head. relu: a linear map and ReLU on the first token.
"""

RESERVED_POSITIONS: dict[str, int] = {"roberta": 2, "xlm-roberta": 2, "camembert": 2}
"""Position embeddings that a family keeps for padding: its longest input is that much shorter than their number."""
