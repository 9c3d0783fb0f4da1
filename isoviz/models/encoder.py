"""A model that only reads: every layer's states of any family that transformers loads, and `head` where the adapter knows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
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
        blocks: its layers, where each reads what the one before gave; None where they are not found, or with its head.
    """

    module: nn.Module
    tokenizer: PreTrainedTokenizerBase
    width: int
    head_width: int
    num_layers: int
    longest: int | None
    notes: tuple[str, ...]
    blocks: Sequence[nn.Module] | None = None

    def each_layer(self, batch: dict[str, Tensor], visit: Callable[[int, Tensor], None]) -> Tensor | None:
        """Call `visit` with the number and the (B, L, d) states of each layer, while the network runs: none is kept.

        Where the layers are not found (see `blocks`), all states are there at once. Arguments and result are otherwise those of a call.
        """
        if self.blocks is None:
            states, head = self(batch)
            for layer, state in enumerate(states):
                visit(layer, state)
            return head
        with torch.inference_mode(), _known_tokens(), _watching(self.blocks, visit):
            last = pooled.run(self.module, batch).last_hidden_state
            visit(self.num_layers, last)
        return None

    def __call__(self, batch: dict[str, Tensor]) -> tuple[Sequence[Tensor], Tensor | None]:
        """All hidden states, (B, L, d) each, embeddings first; and (B, h) pooled vectors if it was loaded with its head.

        Args:
            batch: `input_ids`, `attention_mask` and what else the tokenizer gives, (B, L), padded on the right: a decoder's
                tokens cannot see what stands after them, so padding changes nothing.
        """
        with torch.inference_mode(), _known_tokens():
            if isinstance(self.module, HeadedModel):
                reps = self.module.wiring.encode(batch)
                assert reps.embeddings is not None
                return (reps.embeddings, *reps.hidden_states), reps.pooled
            return pooled.layers(self.module, batch), None


@contextmanager
def _known_tokens() -> Iterator[None]:
    try:
        yield
    except IndexError:
        raise ModelError.at("model", "its tokenizer gives a token number that it has no embedding for") from None


@contextmanager
def _watching(blocks: Sequence[nn.Module], visit: Callable[[int, Tensor], None]) -> Iterator[None]:
    """While it lasts, `visit` sees the states that each block is given, with its number."""

    def seen(number: int, _: nn.Module, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
        state: Any = positional[0] if positional else named.get("hidden_states")
        visit(number, state)

    handles = [
        block.register_forward_pre_hook(partial(seen, number), with_kwargs=True) for number, block in enumerate(blocks)
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def load(
    source: ModelSource,
    *,
    head: bool = False,
    direction: str | None = None,
    allow_random: bool = False,
    **options: Any,
) -> Encoder:
    """Load a model for reading, in float32 unless `options` say otherwise.

    Args:
        source: on this machine (see `sources.fetch`).
        head: with the modules between the last layer and a classifier; only for families that the adapter knows.
        direction: "en-ro" where the texts are to be translated, for tokenizers that mark their language.
        allow_random: accept a checkpoint that lacks encoder weights; they are drawn at random, and `notes` says so.
        options: for `from_pretrained`, see `isoviz.models.placing`.

    Raises:
        ModelError: it cannot be loaded, or its weights do not fit its configuration.
    """
    config = folders.config_of(Path(source.location)) or {}
    tokenizer = load_tokenizer(source, direction)
    notes: list[str] = []
    module: nn.Module
    network_config: Any
    if head:
        network, mismatch = load_network_with_mismatch(
            source, num_labels=2, seed=0, allow_random=allow_random, **options
        )
        model = HeadedModel(network, Hooks())
        module, network_config, head_width = model, model.network.config, model.head_width
        notes += filter(None, [untrained_pooling(source)])
    else:
        network, mismatch = load_bare(source, allow_random=allow_random, **options)
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
        states = _probe(encoder, dict(tokenizer(_PROBE, return_tensors="pt")))
    encoder.num_layers, encoder.width = len(states) - 1, states[-1].shape[-1]
    encoder.head_width = head_width or encoder.width
    if encoder.num_layers < 1 or len({state.shape[-1] for state in states}) > 1:
        raise ModelError.at(
            "model",
            f"'{source.name}' gives {len(states)} states of one vector per token, so it cannot be measured layer by layer",
        )
    return encoder


def _probe(encoder: Encoder, batch: dict[str, Tensor]) -> Sequence[Tensor]:
    """The states of a text; in the same pass the blocks are found: the list of modules that are given just these, one after another."""
    given: dict[int, dict[int, Tensor]] = {}
    lists = [module for module in encoder.module.modules() if isinstance(module, nn.ModuleList) and len(module)]
    with ExitStack() as watched:
        for place, blocks in enumerate(lists):
            watched.enter_context(_watching(list(blocks), given.setdefault(place, {}).__setitem__))
        states, _ = encoder(batch)
    for blocks, seen in zip(lists, given.values(), strict=True):
        follow = len(blocks) == len(seen) == len(states) - 1 and not isinstance(encoder.module, HeadedModel)
        if follow and all(
            isinstance(state, Tensor) and torch.equal(state.to(states[number].device), states[number])
            for number, state in seen.items()
        ):
            encoder.blocks = list(blocks)
    return states


def _positions(config: Any) -> dict[str, Any]:
    """The number of positions and the family, by the configuration with its defaults filled in."""
    count = getattr(config, "max_position_embeddings", None)
    return {"max_position_embeddings": count, "model_type": config.model_type} if isinstance(count, int) else {}
