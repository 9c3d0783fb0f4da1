"""A model that only reads: every layer's states of any family that transformers loads, and `head` where the adapter knows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from isoviz.errors import ModelError
from isoviz.models import families, folders, pooled
from isoviz.models.adapter import HeadedModel, load_network_with_mismatch, load_tokenizer
from isoviz.models.checkpoint import untrained_pooling
from isoviz.models.hooks import Hooks
from isoviz.models.loading import load_bare, reading
from isoviz.models.sources import ModelSource

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_PROBE = "A text of a few words, one of them unheard-of: isotropologically."


@dataclass
class Encoder:
    """A loaded model in evaluation mode, with its tokenizer.

    Attributes:
        module: what is called: the bare encoder or decoder (of an encoder-decoder the encoder), or the adapter's model.
        tokenizer: its own.
        width: d, of its states.
        head_width: h, of what a classifier would read; `width` where there is no such thing.
        num_layers: transformer layers.
        longest: tokens that it can read at most; None if it does not say.
        notes: what a reader of its states must know.
    """

    module: nn.Module
    tokenizer: PreTrainedTokenizerBase
    width: int
    head_width: int
    num_layers: int
    longest: int | None
    notes: tuple[str, ...]

    def __call__(self, batch: dict[str, Tensor]) -> tuple[Sequence[Tensor], Tensor | None]:
        """All hidden states, (B, L, d) each, embeddings first; and (B, h) pooled vectors if it was loaded with its head.

        Args:
            batch: `input_ids`, `attention_mask` and what else the tokenizer gives, (B, L), padded on the right: a decoder's
                tokens cannot see what stands after them, so padding changes nothing.
        """
        try:
            with torch.inference_mode():
                if isinstance(self.module, HeadedModel):
                    encoding = self.module.wiring.encode(batch)
                    return encoding.hidden_states, encoding.pooled
                return pooled.layers(self.module, batch), None
        except IndexError:
            raise ModelError(
                "model: its tokenizer gives a token number that it has no embedding for", field="model"
            ) from None


def load(
    source: ModelSource, *, head: bool = False, direction: str | None = None, allow_random: bool = False
) -> Encoder:
    """Load a model for reading, in float32.

    Args:
        source: on this machine (see `sources.fetch`).
        head: with the modules between the last layer and a classifier; only for families that the adapter knows.
        direction: "en-ro" where the texts are to be translated, for tokenizers that mark their language.
        allow_random: accept a checkpoint that lacks encoder weights; they are drawn at random, and `notes` says so.

    Raises:
        ModelError: it cannot be loaded, or its weights do not fit its configuration.
    """
    config = folders.config_of(Path(source.location)) or {}
    tokenizer = load_tokenizer(source, direction)
    notes: list[str] = []
    module: nn.Module
    network_config: Any
    if head:
        network, mismatch = load_network_with_mismatch(source, num_labels=2, seed=0, allow_random=allow_random)
        model = HeadedModel(network, Hooks())
        module, network_config, head_width = model, model.network.config, model.head_width
        notes += filter(None, [untrained_pooling(source)])
    else:
        network, mismatch = load_bare(source, allow_random=allow_random)
        module, network_config, head_width = network, network.config, 0
        if families.architecture(config) == "encoder-decoder":
            module = network.get_encoder()
            notes.append("of this encoder-decoder the encoder is read; its decoder takes no part")
    if mismatch:
        notes.append(f"random weights: {mismatch}")
    module.eval()
    with reading(source):  # sizes that fit the weights may still not fit each other, or the tokenizer
        encoder = Encoder(
            module=module,
            tokenizer=tokenizer,
            width=0,
            head_width=head_width,
            num_layers=0,
            longest=families.longest_input({**config, **_positions(network_config)}),
            notes=tuple(notes),
        )
        states, _ = encoder(dict(tokenizer(_PROBE, return_tensors="pt")))
    encoder.num_layers, encoder.width = len(states) - 1, states[-1].shape[-1]
    encoder.head_width = head_width or encoder.width
    if encoder.num_layers < 1 or len({state.shape[-1] for state in states}) > 1:
        raise ModelError(
            f"model: '{source.name}' gives {len(states)} states of one vector per token, so it cannot be measured layer by layer",
            field="model",
        )
    return encoder


def _positions(config: Any) -> dict[str, Any]:
    """The number of positions and the family, by the configuration with its defaults filled in."""
    count = getattr(config, "max_position_embeddings", None)
    return {"max_position_embeddings": count, "model_type": config.model_type} if isinstance(count, int) else {}
