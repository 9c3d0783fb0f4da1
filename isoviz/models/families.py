"""The model families whose parts we know by name. Plain facts, no torch: the adapter acts on them, messages list them."""

from __future__ import annotations

from typing import Literal

from isoviz.tasks.protocol import HeadKind

Head = Literal["pooler", "dense", "gelu", "relu", "context", "norm", "end"]

CLASSIFIERS: dict[str, Head] = {
    "bert": "pooler",
    "albert": "pooler",
    "roberta": "dense",
    "xlm-roberta": "dense",
    "camembert": "dense",
    "distilbert": "relu",
    "electra": "gelu",
    "deberta-v2": "context",
    "modernbert": "norm",
    "bart": "end",
    "mbart": "end",
    "t5": "end",
}
"""How a family gets from the last layer to the vector that feeds the classifier's output layer.

pooler: the encoder's own pooler (dense + tanh on the first token). dense: dropout, dense and tanh inside the classification
head; gelu: the same with GELU. relu: a linear map and ReLU on the first token. context: a pooler beside the encoder. norm:
dense, activation and layer norm on the first token or the mean. end: dropout, dense and tanh on what the decoder makes of the
text's end token, having read the text itself one place to the right.
"""

SPANS: frozenset[str] = frozenset(CLASSIFIERS)
"""Families that find a stretch of the second text; deberta-v2 counts DeBERTa-v3 in."""

SEQ2SEQ: frozenset[str] = frozenset({"bart", "mbart", "t5", "marian"})
"""Families that write a text of their own."""

RESERVED_POSITIONS: dict[str, int] = {"roberta": 2, "xlm-roberta": 2, "camembert": 2}
"""Position embeddings that a family keeps for padding: its longest input is that much shorter than their number."""


CITES: dict[str, tuple[str, ...]] = {
    "bert": ("devlin2019bert",),
    "albert": ("lan2020albert",),
    "roberta": ("liu2019roberta",),
    "xlm-roberta": ("conneau2020unsupervised",),
    "camembert": ("martin2020camembert",),
    "distilbert": ("sanh2019distilbert",),
    "electra": ("clark2020electra",),
    "deberta-v2": ("he2023debertav3",),
    "modernbert": ("warner2024modernbert",),
    "bart": ("lewis2020bart",),
    "mbart": ("liu2020multilingual",),
    "t5": ("raffel2020exploring",),
    "marian": ("junczys2018marian",),
}
"""Keys of a family's papers in `isoviz.bibliography`."""


def families_of(kind: HeadKind) -> frozenset[str]:
    """The families that can carry a head of that kind."""
    return {"span": SPANS, "seq2seq": SEQ2SEQ}.get(kind, frozenset(CLASSIFIERS))
