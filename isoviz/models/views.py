"""The result of one pass through an encoder: a cloud per layer and pooling, the tokens as running sums. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError
from isoviz.metrics.streaming import CovarianceAccumulator
from isoviz.models.families import CLASSIFIERS, architecture

Pooling = Literal["sentence", "cls", "last", "mean", "tokens", "head"]

POOLINGS: tuple[Pooling, ...] = get_args(Pooling)
"""sentence: the vector that a sentence-transformers model gives, through all its modules. cls: the first token. last: the last token
(padding left out). mean: the mean of a text's tokens. tokens: every token. head: what a classifier would read.
"""


def poolings_of(config: Mapping[str, Any]) -> tuple[Pooling, ...]:
    """The poolings that a bare transformer offers, by the content of its `config.json`; the first is the usual one.

    The first token of a decoder has seen nothing but itself, so its last one stands for the text; the encoder of an
    encoder-decoder has no token that stands for it.
    """
    kind = architecture(config)
    if kind != "encoder":
        return ("last", "mean", "tokens") if kind == "decoder" else ("mean", "tokens")
    return ("cls", "mean", "tokens", "head") if config.get("model_type") in CLASSIFIERS else ("cls", "mean", "tokens")


@dataclass(frozen=True)
class TokenView:
    """The unpadded tokens of one layer ([CLS] and [SEP] among them).

    Attributes:
        stream: running sums over all n tokens.
        one_per_row: (rows, d) float32, one random token of each row: independent points, for `isoscore_unbiased`.
        sample: (m, d) float32, m <= n tokens drawn without replacement, in the order of the rows and of the text.
        groups: (m,) int64, the row that each sampled token stands in.
        ids: (m,) int64, the number of each sampled token in the tokenizer's vocabulary.
        entropies: (k,) prompt entropy of k texts, the same at each layer; nan for a text of one token.
    """

    stream: CovarianceAccumulator
    one_per_row: NDArray[np.float32]
    sample: NDArray[np.float32]
    groups: NDArray[np.int64]
    ids: NDArray[np.int64]
    entropies: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True)
class Views:
    """All clouds of one pass. Which tokens were drawn depends on the seed and the rows alone, and is the same at each layer.

    Attributes:
        model: name of the model.
        rows: n, number of texts (or pairs).
        depth: transformer layers; layer 0 is the embedding output, `depth` the last.
        lengths: (rows,) int64, tokens read of each row.
        max_length: tokens read of a row at most.
        truncated: rows that were longer, and were cut.
        device: where the encoder ran.
        clouds: (layer, pooling) → (rows, d) float32 in the order of the rows, for all but tokens.
        tokens: layer → its tokens.
        warnings: what a reader of these clouds must know.
    """

    model: str
    rows: int
    depth: int
    lengths: NDArray[np.int64]
    max_length: int
    truncated: int
    device: str
    clouds: dict[tuple[int, Pooling], NDArray[np.float32]]
    tokens: dict[int, TokenView]
    warnings: tuple[str, ...]

    def points(self, layer: int, pooling: Pooling) -> NDArray[np.float32]:
        """One cloud, (n, d); for `tokens` the kept sample. `InputError` for one that was not requested."""
        if pooling == "tokens" and layer in self.tokens:
            return self.tokens[layer].sample
        if (layer, pooling) not in self.clouds:
            have = sorted({*self.clouds, *((number, "tokens") for number in self.tokens)})
            listed = ", ".join(f"{number} {name}" for number, name in have)
            raise InputError.at("layer", f"no cloud of layer {layer}, {pooling} (there are: {listed})")
        return self.clouds[layer, pooling]
