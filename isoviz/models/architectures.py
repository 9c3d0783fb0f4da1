"""How a model reads a text: as an encoder, a decoder, or both. Plain facts from its configuration, no torch.

From this follow the poolings that make sense, and the head kinds that a family can be fine-tuned with.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

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

_LANGUAGE_MODELS: Final = ("ForCausalLM", "LMHeadModel")


def architecture(config: Mapping[str, Any]) -> Architecture:
    """What a model is, by the content of its `config.json`."""
    family = config.get("model_type")
    if family in ENCODER_DECODERS or config.get("is_encoder_decoder"):
        return "encoder-decoder"
    named = config.get("architectures") or ()
    if family in DECODERS or config.get("is_decoder"):
        return "decoder"
    known = family in CLASSIFIERS
    return "decoder" if not known and any(name.endswith(_LANGUAGE_MODELS) for name in named) else "encoder"


def heads(family: str) -> tuple[HeadKind, ...]:
    """The head kinds that a family can be fine-tuned with; none for one that can only be measured and explored."""
    return tuple(kind for kind in HEAD_KINDS if family in TRAINABLE[kind])


def longest_input(config: Mapping[str, Any]) -> int | None:
    """Tokens that a model can read at most; None where its configuration does not say."""
    positions = next((config[name] for name in ("max_position_embeddings", "n_positions") if config.get(name)), None)
    if positions is None:
        return None
    family = str(config.get("model_type"))
    return int(positions) - RESERVED_POSITIONS.get(family, _ALSO_RESERVED.get(family, 0))


def needs_own_code(config: Mapping[str, Any]) -> bool:
    """Whether a model can be read only by running code that comes with it: it brings some, and transformers has none."""
    family = str(config.get("model_type", ""))
    return bool(config.get("auto_map")) and family not in _known() and not _in_transformers(family)


def _known() -> frozenset[str]:
    return DECODERS | ENCODER_DECODERS | frozenset(CLASSIFIERS)


@functools.cache
def _in_transformers(family: str) -> bool:
    """Whether the library has a folder for the family; importing it to ask would cost a page a second."""
    spec = importlib.util.find_spec("transformers")
    places = [] if spec is None else spec.submodule_search_locations or []
    return any((Path(place) / "models" / family.replace("-", "_").lower()).is_dir() for place in places if family)
