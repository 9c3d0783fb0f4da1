"""How a model reads a text: as an encoder, a decoder, or both. Plain facts from its configuration, no torch.

From this follow the poolings that make sense, and the head kinds that a family can be fine-tuned with.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from isoviz.errors import repr_of, shortened
from isoviz.models.families import CLASSIFIERS, RESERVED_POSITIONS, families_of
from isoviz.tasks.protocol import HEAD_KINDS, HeadKind

Architecture = Literal["encoder", "decoder", "encoder-decoder"]

DECODERS: Final = frozenset({
    "bloom", "codegen", "cohere", "falcon", "gemma", "gemma2", "gemma3_text", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox",
    "gptj", "granite", "llama", "mistral", "mixtral", "mpt", "olmo", "olmo2", "openai-gpt", "opt", "phi", "phi3", "qwen2",
    "qwen3", "smollm3", "stablelm", "starcoder2", "xglm",
})  # fmt: skip
"""Families whose tokens see only what stands before them. Others are known by the architecture that their checkpoint names."""

ENCODER_DECODERS: Final = frozenset({
    "bart", "bigbird_pegasus", "blenderbot", "fsmt", "led", "longt5", "m2m_100", "marian", "mbart", "mt5", "mvp", "pegasus",
    "plbart", "prophetnet", "switch_transformers", "t5", "umt5",
})  # fmt: skip

TRAINABLE: Final[Mapping[HeadKind, frozenset[str]]] = {kind: families_of(kind) for kind in HEAD_KINDS}
"""Families that the adapter can put a head of each kind on."""

_ALSO_RESERVED: Final = dict.fromkeys(
    ["data2vec-text", "esm", "ibert", "longformer", "luke", "mpnet", "roberta-prelayernorm", "xlm-roberta-xl", "xmod"],
    2,
)
"""Position embeddings kept for padding, by families that are measured only."""

_WIDTHS: Final = ("hidden_size", "d_model", "n_embd", "dim")
_NARROW: Final = ("embedding_size", "true_hidden_size")
_VOCABULARY: Final = ("vocab_size",)
_INNER: Final = ("intermediate_size", "d_ff", "hidden_dim", "encoder_ffn_dim", "decoder_ffn_dim")
_LAYERS: Final = ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers")
_HEADS: Final = (
    "num_attention_heads", "num_heads", "n_head", "n_heads", "encoder_attention_heads", "decoder_attention_heads",
)  # fmt: skip
_POSITIONS: Final = ("max_position_embeddings", "n_positions")
_SIZES: Final[Mapping[tuple[str, ...], int]] = {
    (*_WIDTHS, *_NARROW, *_INNER): 10**6, _VOCABULARY: 10**7, _LAYERS: 1000, _HEADS: 10**4, _POSITIONS: 10**8,
}  # fmt: skip
"""What a configuration calls its sizes → the largest that is a size and no slip."""

_LANGUAGE_MODELS: Final = ("ForCausalLM", "LMHeadModel")


def architecture(config: Mapping[str, Any]) -> Architecture:
    """The architecture of a model, by the content of its `config.json`."""
    family = config.get("model_type")
    if family in ENCODER_DECODERS or config.get("is_encoder_decoder"):
        return "encoder-decoder"
    listed = config.get("architectures")
    named = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    if family in DECODERS or config.get("is_decoder"):
        return "decoder"
    is_known = family in CLASSIFIERS
    return "decoder" if not is_known and any(name.endswith(_LANGUAGE_MODELS) for name in named) else "encoder"


def heads(family: str) -> tuple[HeadKind, ...]:
    """The head kinds that a family can be fine-tuned with; none for one that can only be measured and explored."""
    return tuple(kind for kind in HEAD_KINDS if family in TRAINABLE[kind])


def impossible_size(config: Mapping[str, Any], stored: int | None = None) -> str | None:
    """The first size in a `config.json` that no network can have, as the end of a sentence that begins with the model; else None.

    transformers would build such a network first, for hours or in all of the memory, and compare it with the weights then.

    Args:
        stored: bytes of the weights, if they are known: a matrix that is larger cannot be in them.
    """
    for names, most in _SIZES.items():
        for name in names:
            size = config.get(name)
            if size is None or isinstance(size, list):  # some families have one per layer
                continue
            if isinstance(size, bool) or not isinstance(size, int) or not 0 < size <= most:
                return f"has {name} = {shortened(repr_of(size))} in its config.json (expected a whole number, 1 to {most:,})"
    width = next((config[name] for name in (*_NARROW, *_WIDTHS) if isinstance(config.get(name), int)), 1)
    for name in (*_VOCABULARY, *_INNER):
        size = config.get(name)
        if stored is not None and isinstance(size, int) and width * size > 2 * stored:
            return f"has {name} = {size:,} in its config.json, which does not fit into its {stored:,} bytes of weights"
    return None


def longest_input(config: Mapping[str, Any]) -> int | None:
    """Tokens that a model can read at most; None where its configuration does not say."""
    positions = next((config[name] for name in _POSITIONS if config.get(name)), None)
    if not isinstance(positions, int):
        return None
    family = str(config.get("model_type"))
    return positions - RESERVED_POSITIONS.get(family, _ALSO_RESERVED.get(family, 0))


def needs_own_code(config: Mapping[str, Any]) -> bool:
    """Whether a model can be read only by running code that comes with it: it brings some, and transformers has none."""
    family = str(config.get("model_type", ""))
    return bool(config.get("auto_map")) and family not in _known() and not _in_transformers(family)


def _known() -> frozenset[str]:
    return DECODERS | ENCODER_DECODERS | frozenset(CLASSIFIERS)


@functools.cache
def _in_transformers(family: str) -> bool:
    """Whether the library has a folder for the family; importing it to ask would cost a page a second."""
    if not re.fullmatch(r"[\w-]{1,100}", family):
        return False
    spec = importlib.util.find_spec("transformers")
    places = [] if spec is None else spec.submodule_search_locations or []
    return any((Path(place) / "models" / family.replace("-", "_").lower()).is_dir() for place in places)
